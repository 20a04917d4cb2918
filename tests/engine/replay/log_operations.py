"""The operations of a script that are about one log that is open: appends, queries, changes."""

from collections.abc import Callable
from typing import Any

from storage.log.log import Log
from storage.log.producer_state_entry import (
    SENTINEL,
    UNKNOWN_VERSION,
    AppendOrigin,
    VerificationGuard,
)
from storage.log.validation import AppendRequest, LogAppendInfo
from tests.engine.replay.script_batches import ScriptBatches
from tests.engine.replay.script_cleaning import ScriptCleaning
from tests.engine.replay.script_clock import ScriptClock
from tests.engine.replay.script_queries import Queries
from tests.engine.replay.script_values import Line, Values, segment

_ORIGINS = {
    "client": AppendOrigin.CLIENT,
    "coordinator": AppendOrigin.COORDINATOR,
    "raft": AppendOrigin.RAFT_LEADER,
}


class LogOperations:
    """What a script does to a log; the guards of transactions are kept from line to line."""

    def __init__(self, clock: ScriptClock, cleaning: ScriptCleaning) -> None:
        self._clock, self._cleaning = clock, cleaning
        self._guards: dict[int, VerificationGuard] = {}

    def perform(self, op: str, log: Log, line: Line, resolved: Line) -> Any:
        """Do a line, and give what comes of it. resolved: notes what symbolic values stood for."""
        values = Values(log, resolved)
        if op == "append":
            return self._append(log, values, line)
        if op == "end_txn":
            return self._append(log, values, _as_marker(line))
        if op == "verify_txn":
            return self._verify(log, values, line)
        if op == "clean":
            return self._cleaning.clean(log, values, line)
        if op in _CHANGES:
            return _CHANGES[op](log, values, line)
        return Queries(log, values, line).answer(op)

    # ---- append -------------------------------------------------------------------------------

    def _append(self, log: Log, values: Values, line: Line) -> Line:
        data = ScriptBatches(line, self._clock.now_ms, values).data()
        epoch = line.get("leader_epoch", 0)
        magic = line.get("to_magic", 2)
        if line.get("as", "leader") == "follower":
            info = log.append_as_follower(data, epoch)
        elif magic < 2:
            request = AppendRequest(leader_epoch=epoch, target_magic=magic)
            info = log.append_as_leader(data, request)
        else:
            info = log.append_as_leader(data, self._request(line, epoch))
        if self._clock.follows_end:
            log.follow_end()
        return _appended(info)

    def _request(self, line: Line, epoch: int) -> AppendRequest:
        guard = SENTINEL
        if line.get("guard"):
            guard = self._guards.get(line["pid"], SENTINEL)
        return AppendRequest(
            origin=_ORIGINS[line.get("origin", "client")],
            leader_epoch=epoch,
            guard=guard,
            transaction_version=line.get("transaction_version", UNKNOWN_VERSION),
        )

    def _verify(self, log: Log, values: Values, line: Line) -> Line:
        sequence, epoch = values.sequence(line), values.epoch(line)
        bump = line.get("supports_epoch_bump", False)
        guard = log.start_transaction_verification(line["pid"], sequence, epoch, bump)
        self._guards[line["pid"]] = guard
        return {"needed": guard is not SENTINEL}


def _flush(log: Log, values: Values, line: Line) -> None:
    if "offset" in line:
        log.flush_below(values.offset(line, "offset"))
    else:
        log.flush(line.get("force", False))


def _truncate_fully(log: Log, values: Values, line: Line) -> None:
    offset = values.offset(line, "offset")
    start = values.offset(line, "log_start_offset") if "log_start_offset" in line else None
    log.truncate_fully(offset, start)


def _high_watermark(log: Log, values: Values, line: Line) -> Line:
    to, how = values.offset(line, "offset"), line.get("how", "set")
    if how == "set":
        return {"changed": log.update_high_watermark(to)}
    if how == "follow":
        return {"changed": log.follow_high_watermark(to)}
    before = log.increment_high_watermark(log.place_of(to))
    return {"changed": None if before is None else before.offset}


def _mtime(log: Log, _: Values, line: Line) -> None:
    segment(log, line["segment"]).set_last_modified(line["ms"])


_CHANGES: dict[str, Callable[[Log, Values, Line], Any]] = {
    "mtime": _mtime,
    "roll": lambda log, _, __: {"base_offset": log.roll().base_offset},
    "flush": _flush,
    "truncate_to": lambda log, values, line: {
        "truncated": log.truncate_to(values.offset(line, "offset"))
    },
    "truncate_fully": _truncate_fully,
    "delete_records": lambda log, values, line: {
        "incremented": log.increment_log_start(values.offset(line, "offset"))
    },
    "high_watermark": _high_watermark,
    "retention": lambda log, _, __: {"deleted": log.delete_old_segments()},
    "assign_epoch": lambda log, values, line: log.assign_epoch(
        line["epoch"], values.offset(line, "offset")
    ),
    "snapshot": lambda log, _, __: log.take_producer_snapshot(),
    "expire_producers": lambda log, _, __: log.remove_expired_producers(),
    "load_producer_state": lambda log, values, line: log.load_producer_state(
        values.offset(line, "offset")
    ),
}


def _as_marker(line: Line) -> Line:
    marker: Line = {"transaction_version": 1}
    if "hex" not in line:
        marker["marker"] = "commit" if line["commit"] else "abort"
    if "as" not in line:
        marker["origin"] = "coordinator"
    return marker | line


def _appended(info: LogAppendInfo) -> Line:
    return {
        "first_offset": info.first_offset,
        "last_offset": info.last_offset,
        "max_timestamp": info.max_timestamp,
        "log_append_time": info.log_append_time,
        "log_start_offset": info.log_start_offset,
        "last_leader_epoch": info.last_leader_epoch,
        "source_compression": info.source_codec.name.lower(),
        "valid_bytes": info.valid_bytes,
        "records_converted": info.records_converted,
    }
