"""A script of operations on one log, done line by line.

The clock stands still but for the script's own lines, nothing runs beside it, and so the same
script gives the same transcript and the same files: those of Kafka's own engine, which is what a
replay is for.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from compactor.replay.script_batches import ScriptBatches
from compactor.replay.script_damage import damage
from compactor.replay.script_queries import Queries
from compactor.replay.script_values import Line, ScriptError, Values, segment
from compactor.replay.transcript import described, files_below, state_of
from storage.files.files import Files
from storage.formats import checkpoint, clean_shutdown
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.log.engine.appending import AppendRequest, LogAppendInfo
from storage.log.engine.errors import ConfigError, LogError
from storage.log.engine.loading import LoadingState
from storage.log.engine.local_log import LogDirState
from storage.log.engine.log import Log, LogOptions
from storage.log.engine.log_config import LogConfig
from storage.log.engine.moves import remove_if_there
from storage.log.engine.producer_append import UNKNOWN_VERSION, AppendOrigin
from storage.log.engine.producer_manager import ProducerSettings
from storage.log.engine.producers import SENTINEL, VerificationGuard
from storage.log.engine.scheduler import ManualScheduler

FIRST_CLOCK_MS = 1_700_000_000_000
_CONFIGURING = ("partition", "config", "broker", "clock", "settings")
_ORIGINS = {
    "client": AppendOrigin.CLIENT,
    "coordinator": AppendOrigin.COORDINATOR,
    "raft": AppendOrigin.RAFT_LEADER,
}


class ClosedError(LogError):
    """An operation that needs an open log."""


class OpenError(LogError):
    """An operation that needs a closed log."""


class Replay:
    """One log in a log directory, and the script's clock."""

    def __init__(self, files: Files, log_dir: str) -> None:
        self._files, self._log_dir = files, os.path.abspath(log_dir)
        if not files.is_directory(self._log_dir):
            files.make_directory(self._log_dir)
        self._now_ms = FIRST_CLOCK_MS
        self._scheduler = ManualScheduler(lambda: self._now_ms)
        self._config, self._follows = LogConfig(), False
        self._producer_settings = ProducerSettings(max_transaction_ms=300_000)
        self._partition = ("t", 0)
        self._guards: dict[int, VerificationGuard] = {}
        self._log: Log | None = None
        self._resolved: Line = {}

    @property
    def _partition_dir(self) -> str:
        return os.path.join(self._log_dir, "{}-{}".format(*self._partition))

    def lines(self, script: Iterable[Line | None]) -> Iterator[Line]:
        """Do the lines of a script, and yield those of its transcript. None: a line to pass over.

        A log that is open after the last line is let go of as it is.
        """
        for number, line in enumerate(script, 1):
            if line is not None:
                yield self._line(number, line)
        if self._log is not None:
            self._crash()

    def _line(self, number: int, line: Line) -> Line:
        told: Line = {"n": number, "op": line["op"]}
        self._resolved = {}
        outcome: Line
        try:
            outcome = {"result": self._perform(line["op"], line)}
        except (LogError, OSError) as error:
            outcome = described(error)
        if self._resolved:
            told["resolved"] = self._resolved
        return told | outcome | {"state": None if self._log is None else state_of(self._log)}

    def _perform(self, op: str, line: Line) -> Any:
        if op in _CONFIGURING:
            self._configure(op, line)
            return None
        if op in _LIFE:
            return _LIFE[op](self, line)
        log = self._opened()
        values = Values(log, self._resolved)
        if op == "append":
            return self._append(log, values, line)
        if op == "end_txn":
            return self._append(log, values, _as_marker(line))
        if op == "verify_txn":
            return self._verify(log, values, line)
        if op in _CHANGES:
            return _CHANGES[op](self, log, values, line)
        return Queries(log, values, line).answer(op)

    def _opened(self) -> Log:
        if self._log is None:
            raise ClosedError("no log is open")
        return self._log

    # ---- settings -----------------------------------------------------------------------------

    def _configure(self, op: str, line: Line) -> None:
        if op == "partition":
            self._partition = (line["topic"], line.get("partition", 0))
        elif op == "config":
            self._reconfigure(line)
        elif op == "broker":
            settings, expiration = self._producer_settings, "producer.id.expiration.ms"
            settings.expiration_ms = line.get(expiration, settings.expiration_ms)
            verifies = line.get("transaction.partition.verification.enable")
            if verifies is not None:
                settings.verifies_transactions = verifies
        elif op == "clock":
            self._now_ms = line.get("ms", self._now_ms + line.get("advance", 0))
            self._scheduler.tick()
        else:
            self._follows = line.get("follow_high_watermark", self._follows)

    def _reconfigure(self, line: Line) -> None:
        values = {name: str(value) for name, value in line.items() if name not in ("op", "log")}
        self._config = self._config.changed(values)
        if self._log is not None:
            self._log.config = self._config

    # ---- the log's life -----------------------------------------------------------------------

    def _open(self, line: Line) -> None:
        if self._log is not None:
            raise OpenError("the log is open already")
        marker = os.path.join(self._log_dir, CLEAN_SHUTDOWN)
        is_clean = line.get("clean", self._files.exists(marker))
        remove_if_there(self._files, marker)
        options = LogOptions(
            clock=lambda: self._now_ms,
            scheduler=self._scheduler,
            config=self._config,
            files=self._files,
            state=LoadingState(
                is_clean=is_clean,
                log_start=self._known(line, "log_start_offset", checkpoint.LOG_START),
                recovery_point=self._known(line, "recovery_point", checkpoint.RECOVERY_POINT),
            ),
            producer_settings=self._producer_settings,
            directory=LogDirState(),
        )
        self._log = Log.open(self._partition_dir, options)
        self._log.update_high_watermark(self._known(line, "high_watermark", checkpoint.REPLICATION))

    def _known(self, line: Line, name: str, file: str) -> int:
        if name in line:
            return int(line[name])
        entries = checkpoint.read(os.path.join(self._log_dir, file), self._files)
        return entries.get(self._partition, 0)

    def _close(self, _: Line) -> None:
        log = self._opened()
        self._scheduler.forget()
        log.flush(force=True)
        log.close()
        self._write_checkpoints(log)
        clean_shutdown.write(self._log_dir, files=self._files)
        self._log = None

    def _checkpoint(self, _: Line) -> None:
        self._write_checkpoints(self._opened())

    def _write_checkpoints(self, log: Log) -> None:
        self._write_checkpoint(checkpoint.RECOVERY_POINT, log.recovery_point)
        self._write_checkpoint(checkpoint.REPLICATION, log.high_watermark)
        start = log.log_start_offset
        told = {self._partition: start} if start > log.segments[0].base_offset else {}
        checkpoint.write(os.path.join(self._log_dir, checkpoint.LOG_START), told, self._files)

    def _write_checkpoint(self, name: str, offset: int) -> None:
        path = os.path.join(self._log_dir, name)
        entries = checkpoint.read(path, self._files) | {self._partition: offset}
        checkpoint.write(path, entries, self._files)

    def _crash(self, _: Line | None = None) -> None:
        log = self._opened()
        self._scheduler.forget()
        self._log = None
        log.close_handlers()
        hidden = f"{log.path}.hidden"
        if self._files.exists(hidden):
            if self._files.exists(log.path):
                self._empty(log.path)
                self._files.rename(log.path, f"{hidden}.gone")
            self._files.rename(hidden, log.path)

    def _empty(self, path: str) -> None:
        for entry in self._files.list_directory(path):
            self._files.remove(os.path.join(path, entry.name))

    def _hide(self, _: Line) -> None:
        path = self._opened().path
        self._files.rename(path, f"{path}.hidden")

    def _damage(self, line: Line) -> Line:
        if self._log is not None:
            raise OpenError("the log is open")
        return damage(self._files, self._log_dir, self._partition_dir, line)

    def _mtime(self, line: Line) -> None:
        segment(self._opened(), line["segment"]).set_last_modified(line["ms"])

    def _list_files(self, _: Line) -> list[Line]:
        return files_below(self._files, self._log_dir)

    # ---- append -------------------------------------------------------------------------------

    def _append(self, log: Log, values: Values, line: Line) -> Line:
        data = ScriptBatches(line, self._now_ms, values).data()
        epoch = line.get("leader_epoch", 0)
        magic = line.get("to_magic", 2)
        if line.get("as", "leader") == "follower":
            info = log.append_as_follower(data, epoch)
        elif magic < 2:
            request = AppendRequest(leader_epoch=epoch, target_magic=magic)
            info = log.append_as_leader(data, request)
        else:
            info = log.append_as_leader(data, self._request(line, epoch))
        if self._follows:
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

    # ---- changes ------------------------------------------------------------------------------

    def _flush(self, log: Log, values: Values, line: Line) -> None:
        if "offset" in line:
            log.flush_below(values.offset(line, "offset"))
        else:
            log.flush(line.get("force", False))

    def _truncate_fully(self, log: Log, values: Values, line: Line) -> None:
        offset = values.offset(line, "offset")
        start = values.offset(line, "log_start_offset") if "log_start_offset" in line else None
        log.truncate_fully(offset, start)

    def _high_watermark(self, log: Log, values: Values, line: Line) -> Line:
        to, how = values.offset(line, "offset"), line.get("how", "set")
        if how == "set":
            return {"changed": log.update_high_watermark(to)}
        if how == "follow":
            return {"changed": log.follow_high_watermark(to)}
        before = log.increment_high_watermark(log.place_of(to))
        return {"changed": None if before is None else before.offset}


_LIFE: dict[str, Callable[[Replay, Line], Any]] = {
    "open": Replay._open,
    "close": Replay._close,
    "checkpoint": Replay._checkpoint,
    "crash": Replay._crash,
    "hide": Replay._hide,
    "damage": Replay._damage,
    "mtime": Replay._mtime,
    "files": Replay._list_files,
}

_CHANGES: dict[str, Callable[[Replay, Log, Values, Line], Any]] = {
    "roll": lambda _, log, __, ___: {"base_offset": log.roll().base_offset},
    "flush": Replay._flush,
    "truncate_to": lambda _, log, values, line: {
        "truncated": log.truncate_to(values.offset(line, "offset"))
    },
    "truncate_fully": Replay._truncate_fully,
    "delete_records": lambda _, log, values, line: {
        "incremented": log.increment_log_start(values.offset(line, "offset"))
    },
    "high_watermark": Replay._high_watermark,
    "retention": lambda _, log, __, ___: {"deleted": log.delete_old_segments()},
    "assign_epoch": lambda _, log, values, line: log.assign_epoch(
        line["epoch"], values.offset(line, "offset")
    ),
    "snapshot": lambda _, log, __, ___: log.take_producer_snapshot(),
    "expire_producers": lambda _, log, __, ___: log.remove_expired_producers(),
    "load_producer_state": lambda _, log, values, line: log.load_producer_state(
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


__all__ = ["ConfigError", "Replay", "ScriptError"]
