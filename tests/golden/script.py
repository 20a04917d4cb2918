"""Scripts for the oracle in few words: a log, what happens to it, its next cleaning at END_MS.

Times are milliseconds before END_MS, so `clean(1000)` with `delete.retention.ms` 1000 sets horizons
that have come exactly at END_MS, and `clean(999)` horizons that have not.
"""

from typing import Any, Self

from tests.oracle.random_script import END_MS, Operation
from tests.support.reference_batch import (
    ReferenceBatch,
    ReferenceRecord,
    encode,
    encode_parts,
)

Record = tuple[str | None, str | None]
LONG_AGO_MS = 100_000  # before END_MS: when a script begins

DEFAULTS = {
    "segment.bytes": 1 << 20,
    "delete.retention.ms": 1000,
    "min.cleanable.dirty.ratio": 0.0,
}


class Script:
    """Operations in the order in which they are called; `lines` adds the beginning and the end."""

    def __init__(self, settings: dict[str, object] | None = None, partition: int = 0) -> None:
        self._partition = partition
        self._settings = {**DEFAULTS, **(settings or {})}
        self._last_settings: dict[str, object] = {"cleanup.policy": "compact"}
        self._last_settings |= {k: v for k, v in self._settings.items() if k == "cleanup.policy"}
        self._operations: list[Operation] = []
        self._mtimes: list[Operation] = []
        self._ago_ms = LONG_AGO_MS

    def at(self, ago_ms: int) -> Self:
        self._ago_ms = ago_ms
        return self._add("clock", ms=END_MS - ago_ms)

    def append(self, *records: Record, ago: list[int] | None = None, **fields: Any) -> Self:
        """Records of key and value; ago: their timestamps before END_MS, else the clock."""
        lines = []
        for number, (key, value) in enumerate(records):
            ago_ms = ago[number] if ago else self._ago_ms
            lines.append({"k": key, "v": value, "ts": END_MS - ago_ms})
        return self.append_lines(lines, **fields)

    def append_lines(self, records: list[Operation], **fields: Any) -> Self:
        return self._add("append", records=records, **fields)

    def append_raw(self, raw: bytes, leader_epoch: int = 0) -> Self:
        return self._add("append_raw", hex=raw.hex(), leader_epoch=leader_epoch)

    def fill(self, **fields: Any) -> Self:
        return self._add("fill", **fields)

    def roll(self) -> Self:
        return self._add("roll")

    def clean(self, ago_ms: int, **fields: Any) -> Self:
        """An earlier cleaning, so long before END_MS."""
        return self.at(ago_ms)._add("clean", **fields)

    def set(self, settings: dict[str, object]) -> Self:
        return self._add("config", **_texts(settings))

    def finally_set(self, settings: dict[str, object]) -> Self:
        """The configuration that the next cleaning goes by, where it is another than the log's."""
        self._last_settings |= settings
        return self

    def null_keys_allowed(self) -> Self:
        """Kafka refuses them in a compacted topic; here they are older than the policy."""
        self._settings["cleanup.policy"] = "delete"
        return self

    def mtime(self, segment: int, ago_ms: int) -> Self:
        self._mtimes.append({"op": "mtime", "segment": segment, "ms": END_MS - ago_ms})
        return self

    def do(self, op: str, **fields: Any) -> Self:
        return self._add(op, **fields)

    def active(self, *records: Record, **fields: Any) -> Self:
        """A new active segment, so that everything before may be cleaned."""
        return self.roll().append(*(records or (("active", "segment"),)), **fields)

    def _add(self, op: str, **fields: Any) -> Self:
        self._operations.append({"op": op, **fields})
        return self

    def lines(self, topic: str) -> list[Operation]:
        begin: list[Operation] = [
            {"op": "partition", "topic": topic, "partition": self._partition},
            {"op": "config", **_texts(self._settings)},
            {"op": "clock", "ms": END_MS - LONG_AGO_MS},
        ]
        # one segment's time is not another's, so that a wrong one shows
        times: list[Operation] = [{"op": "mtime", "from": END_MS - 50_001, "step": 17}]
        end: list[Operation] = [
            {"op": "config", **_texts(self._last_settings)},
            {"op": "clock", "ms": END_MS},
        ]
        return [*begin, *self._operations, *times, *self._mtimes, *end]


def _texts(settings: dict[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in settings.items()}


def raw_batch(
    base_offset: int, records: list[tuple[bytes, bytes | None]], attributes: int = 0, **fields: Any
) -> bytes:
    """An uncompressed batch, its timestamps a second apart; fields override the header's."""
    start_ms = END_MS - LONG_AGO_MS
    made = [
        ReferenceRecord(base_offset + i, start_ms + 1000 * i, *record)
        for i, record in enumerate(records)
    ]
    return raw_batch_of(base_offset, made, attributes=attributes, **fields)


def raw_batch_of(base_offset: int, records: list[ReferenceRecord], **fields: Any) -> bytes:
    encoded: bytes | None = fields.pop("encoded", None)  # of the records, where it is not the usual
    header = {
        "base_offset": base_offset,
        "last_offset": records[-1].offset if records else base_offset,
        "leader_epoch": 0,
        "attributes": 0,
        "base_timestamp": records[0].timestamp if records else -1,
        "max_timestamp": max((record.timestamp for record in records), default=-1),
    }
    batch = ReferenceBatch(**{**header, **fields}, records=tuple(records))
    return encode(batch) if encoded is None else encode_parts(batch, encoded)
