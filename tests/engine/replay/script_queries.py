"""The operations of a script that only ask."""

from collections.abc import Callable
from typing import Any
from zlib import crc32

from compactor.json_types import json_text
from storage.log import log_state
from storage.log.batches import in_memory
from storage.log.errors import LogError
from storage.log.log import Log
from storage.log.log_state import FetchIsolation
from tests.engine.replay.script_values import Line, ScriptError, Values
from tests.engine.replay.transcript import place_of

_ISOLATIONS = {
    "log_end": FetchIsolation.LOG_END,
    "high_watermark": FetchIsolation.HIGH_WATERMARK,
    "committed": FetchIsolation.COMMITTED,
}
TIMES = {
    "earliest": log_state.EARLIEST,
    "latest": log_state.LATEST,
    "max": log_state.MAX,
    "earliest_local": log_state.EARLIEST_LOCAL,
    "latest_tiered": log_state.LATEST_TIERED,
    "earliest_pending_upload": log_state.EARLIEST_PENDING_UPLOAD,
}


class Queries:
    """Answers one line."""

    def __init__(self, log: Log, values: Values, line: Line) -> None:
        self._log, self._values, self._line = log, values, line

    def answer(self, op: str) -> Any:
        if op not in _ANSWERS:
            raise ScriptError(f"there is no operation {json_text(op)}")
        return _ANSWERS[op](self)

    def _offset(self, name: str) -> int:
        return self._values.offset(self._line, name)

    def read(self) -> Line:
        line = self._line
        read = self._log.read(
            self._offset("offset"),
            line.get("max_bytes", 1 << 20),
            _ISOLATIONS[line.get("isolation", "log_end")],
            line.get("min_one_message", True),
        )
        data = read.read()
        told: Line = {
            "fetch_offset": place_of(read.metadata),
            "size": len(data),
            "crc32": crc32(data),
            "first_entry_incomplete": read.first_entry_incomplete,
            **_batches(data),
        }
        aborted = read.aborted
        return told | {"aborted": None if aborted is None else [list(txn) for txn in aborted]}

    def offset_for_timestamp(self) -> Line | None:
        time = self._line["ts"]
        if not isinstance(time, int):
            time = TIMES[time]
        found = self._log.offset_by_timestamp(time)
        if found is None:
            return None
        timestamp, offset, epoch = found
        return {"timestamp": timestamp, "offset": offset, "leader_epoch": epoch}

    def offset_metadata(self) -> Line:
        return place_of(self._log.place_of(self._offset("offset")))

    def offset_snapshot(self) -> Line:
        found = self._log.offset_snapshot()
        return {
            "log_start_offset": found.log_start,
            "log_end_offset": place_of(found.log_end),
            "high_watermark": place_of(found.high_watermark),
            "last_stable_offset": place_of(found.last_stable),
        }

    def aborted_txns(self) -> list[list[int]]:
        start, upper = self._offset("offset"), self._offset("upper")
        return [list(txn) for txn in self._log.aborted_transactions(start, upper)]

    def epoch_end_offset(self) -> Line | None:
        found = self._log.end_offset_of_epoch(self._line["epoch"])
        return None if found is None else {"epoch": found.epoch, "offset": found.offset}

    def epoch_for_offset(self) -> Line:
        return {"epoch": self._log.epochs.epoch_for(self._offset("offset"))}

    def late_txn(self) -> Line:
        return {"late": self._log.has_late_transaction()}


_ANSWERS: dict[str, Callable[[Queries], Any]] = {
    "read": Queries.read,
    "offset_for_timestamp": Queries.offset_for_timestamp,
    "offset_metadata": Queries.offset_metadata,
    "offset_snapshot": Queries.offset_snapshot,
    "aborted_txns": Queries.aborted_txns,
    "epoch_end_offset": Queries.epoch_end_offset,
    "epoch_for_offset": Queries.epoch_for_offset,
    "late_txn": Queries.late_txn,
}


def _batches(data: bytes) -> Line:
    found: list[list[int]] = []
    told: Line = {"batches": found}
    try:
        for batch in in_memory(data):
            found.append([])  # is left empty where the batch does not tell
            found[-1] += [batch.base_offset, batch.last_offset, batch.size_bytes]
    except LogError as error:  # what was read is damaged: the reader finds that out, not the log
        told["batches_error"] = error.kafka_name
    return told
