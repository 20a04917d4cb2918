"""The bytes that an `append` or `end_txn` of a script describes, as a client would send them.

Kafka's own builder makes the same. What it compresses at a level other than a codec's default has
to stand in the script as `hex`.
"""

import struct
from typing import Any

from crc32c import crc32c

from storage.codecs.compression import Codec
from storage.formats.batch_header import (
    BATCH_HEADER_BYTES,
    CHECKED_AT,
    CONTROL,
    CRC_AT,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL,
)
from storage.formats.control_record import KEY, MARKER_VALUE, ControlType
from storage.formats.record import Record
from storage.formats.record_batch import BatchHeader, BatchOptions, encode_batch, seal
from storage.log.validation import message_set, set_v2_times
from tests.engine.replay.script_values import Line, ScriptError, Values

_LEVELS = {"gzip": -1, "lz4": 9, "zstd": 3}  # a codec's own


class ScriptBatches:
    """Makes the bytes of one line."""

    def __init__(self, line: Line, now_ms: int, values: Values) -> None:
        self._line, self._now_ms, self._values = line, now_ms, values

    def data(self) -> bytes:
        """Raise ScriptError where a number has no room in a batch."""
        try:
            return self._described()
        except (struct.error, OverflowError, ValueError) as error:
            raise ScriptError(f"{self._line['op']}: fits no batch: {error}") from error

    def _described(self) -> bytes:
        if "hex" in self._line:
            return bytes.fromhex(self._line["hex"])
        batches = self._line.get("batches", [self._line])
        return self._damaged(b"".join(map(self._batch, batches)))

    def _batch(self, batch: Line) -> bytes:
        if "marker" in batch:
            return self._marker(batch)
        if batch.get("empty"):
            return self._empty(batch)
        return self._data(batch)

    def _base_offset(self, batch: Line) -> int:
        return self._values.offset(batch, "base_offset") if "base_offset" in batch else 0

    def _leader_epoch(self, batch: Line) -> int:
        """A follower's batches have their epoch already, as Raft's do; a client's have none."""
        line = self._line
        is_stamped = line.get("as") == "follower" or line.get("origin") == "raft"
        own: int = line.get("leader_epoch", 0) if is_stamped else -1
        epoch: int = batch.get("batch_epoch", own)
        return epoch

    def _marker(self, batch: Line) -> bytes:
        kind = ControlType.COMMIT if batch["marker"] == "commit" else ControlType.ABORT
        base_offset, time = self._base_offset(batch), batch.get("ts", self._now_ms)
        value = MARKER_VALUE.pack(0, batch.get("coordinator_epoch", 0))
        record = Record(base_offset, time, KEY.pack(0, kind), value)
        options = BatchOptions(
            partition_leader_epoch=self._leader_epoch(batch),
            producer_id=batch["pid"],
            producer_epoch=self._values.epoch(batch),
            is_transactional=True,
            is_control=True,
        )
        return encode_batch([record], options=options)

    def _empty(self, batch: Line) -> bytes:
        epoch, sequence = self._values.epoch(batch), self._values.sequence(batch)
        header = BatchHeader(
            base_offset=self._base_offset(batch),
            batch_length=0,
            partition_leader_epoch=self._leader_epoch(batch),
            magic=MAGIC,
            crc=0,
            attributes=TRANSACTIONAL * bool(batch.get("txn"))
            | CONTROL * bool(batch.get("control")),
            last_offset_delta=batch.get("span", 1) - 1,
            base_timestamp=NO_TIMESTAMP,
            max_timestamp=batch.get("ts", self._now_ms),
            producer_id=batch.get("pid", -1),
            producer_epoch=epoch,
            base_sequence=sequence,
            records_count=0,
        )
        return seal(header, b"")

    def _data(self, batch: Line) -> bytes:
        codec = Codec[batch.get("codec", "none").upper()]
        magic = batch.get("magic", MAGIC)
        records = self._records(batch)
        epoch, sequence = self._values.epoch(batch), self._values.sequence(batch)
        if not records:
            return b""
        level = _LEVELS.get(batch.get("codec", "none"))
        if codec and batch.get("level", level) != level:
            raise ScriptError("a batch compressed at a level of its own has to stand as hex")
        if magic < MAGIC:
            time = self._now_ms if batch.get("log_append_time") else None
            return message_set(records, magic, codec, time)
        last = records[0].offset + batch["span"] - 1 if "span" in batch else None
        options = BatchOptions(
            last_offset=last,
            partition_leader_epoch=self._leader_epoch(batch),
            producer_id=batch.get("pid", -1),
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=bool(batch.get("txn")),
        )
        data = bytearray(encode_batch(records, codec, options))
        if batch.get("log_append_time"):
            set_v2_times(data, 0, self._now_ms, LOG_APPEND_TIME)
        return bytes(data)

    def _records(self, batch: Line) -> list[Record]:
        steps: list[int] = batch.get("steps", [])
        records: list[Record] = []
        offset: int = self._base_offset(batch)
        for number, made in enumerate(batch.get("records", [])):
            if number:
                offset += steps[number - 1] if number <= len(steps) else 1
            headers = tuple((key.encode(), _encoded(value)) for key, value in made.get("h", []))
            time = made.get("ts", self._now_ms)
            records.append(Record(offset, time, _bytes(made, "k"), _bytes(made, "v"), headers))
        return records

    def _damaged(self, data: bytes) -> bytes:
        """With bytes cut off the end, and others written over; with a new checksum, if asked."""
        out = bytearray(data[: max(0, len(data) - self._line.get("cut", 0))])
        for position, patch in self._line.get("edit", []):
            at, new = position % max(1, len(out)), bytes.fromhex(patch)
            out[at : at + len(new)] = new[: len(out) - at]
        if self._line.get("fix_crc") and len(out) >= BATCH_HEADER_BYTES:
            length = int.from_bytes(out[8:12], "big", signed=True)
            end = min(len(out), max(CHECKED_AT, length + LOG_OVERHEAD_BYTES))
            out[CRC_AT:CHECKED_AT] = crc32c(memoryview(out)[CHECKED_AT:end]).to_bytes(4, "big")
        return bytes(out)


def _bytes(record: Line, name: str) -> bytes | None:
    if f"{name}_hex" in record:
        return bytes.fromhex(record[f"{name}_hex"])
    return _encoded(record.get(name))


def _encoded(value: Any) -> bytes | None:
    return None if value is None else str(value).encode()
