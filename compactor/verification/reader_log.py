"""The batches and records of a log as columns, chunk by chunk, for the reader's proof.

Headers are taken apart by numpy, records by the kernels of `reader_kernels`, messages of format v0
and v1 one at a time by `storage.formats.legacy_messages`. Nothing of scan and rewrite is used.
Every checksum is checked, and that offsets ascend. Memory: one chunk, or its largest batch.
"""

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from compactor.verification.reader_kernels import (
    SLACK_BYTES,
    ByteArray,
    Int64Array,
    Secret,
    UInt64Array,
    frame_entries,
    read_records,
)
from storage.codecs.compression import decompress
from storage.errors import CorruptFileError
from storage.file_names import LOG, MAX_RELATIVE_OFFSET, Segment, file_name
from storage.files.local import LOCAL
from storage.formats import legacy_messages, record
from storage.formats.batch_header import (
    BATCH_HEADER_BYTES,
    CHECKED_AT,
    CODEC_MASK,
    CONTROL,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    MAX_LAST_OFFSET,
    TRANSACTIONAL,
)
from storage.formats.control_record import ControlType, decode_type
from storage.formats.record import MalformedRecordError, Record

READ_BYTES = 4 * 1024 * 1024
DECOMPRESSED_BYTES = 32 * 1024 * 1024  # of one chunk, but for the batch that passes it
MIN_RECORD_BYTES = 7
READERS_BITS = TRANSACTIONAL | CONTROL | LOG_APPEND_TIME  # what of the attributes a reader sees
NO_MARKER = -2

# The layout of the header once more, apart from `formats.batch_header` on purpose: a mistake
# there is not repeated by the reader that proves what was made with it.
HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("records_count", ">i4"),
    ]
)
assert HEADER.itemsize == BATCH_HEADER_BYTES
BATCH = np.dtype(
    [(name, np.int64) for name in ("segment", "position", "size", "last_offset", "marker")]
    + [(name, np.int64) for name in HEADER.names or ()]
)

Batches = NDArray[np.void]  # of BATCH


class Records(NamedTuple):
    """One entry of each column for each record; keys and contents by their hashes."""

    offsets: Int64Array
    timestamps: Int64Array
    keys: UInt64Array  # (n, 2)
    contents: UInt64Array  # (n, 2), of key, value and headers as they are written
    kinds: ByteArray
    batches: Int64Array  # row of its batch

    def of(self, chosen: "NDArray[np.bool_] | Int64Array | slice") -> "Records":
        return Records(
            offsets=self.offsets[chosen],
            timestamps=self.timestamps[chosen],
            keys=self.keys[chosen],
            contents=self.contents[chosen],
            kinds=self.kinds[chosen],
            batches=self.batches[chosen],
        )


class Chunk(NamedTuple):
    """Some batches of one segment and all their records."""

    batches: Batches
    records: Records


class LogReader:
    """Reads the segments of a partition directory, in their order."""

    def __init__(self, directory: str, segments: Sequence[Segment], secret: Secret) -> None:
        self._paths = [os.path.join(directory, file_name(s.base_offset, LOG)) for s in segments]
        self._secret = secret
        self._next_offset = 0

    def path(self, segment: int) -> str:
        return self._paths[segment]

    def place(self, batch: np.void) -> tuple[str, int]:
        """Return the file and the position of a batch."""
        return self._paths[int(batch["segment"])], int(batch["position"])

    def chunks(self) -> Iterator[Chunk]:
        """Every batch once. Raise CorruptFileError at the first that is damaged."""
        self._next_offset = 0
        for segment, path in enumerate(self._paths):
            for buffer, position, positions in _framed(path):
                first = 0
                while first < len(positions):
                    chunk = self._chunk(segment, buffer, position, positions[first:])
                    first += len(chunk.batches)
                    yield chunk

    def _chunk(self, segment: int, buffer: ByteArray, position: int, at: Int64Array) -> Chunk:
        path = self._paths[segment]
        batches = _headers(buffer, at)
        batches["segment"], batches["position"], batches["marker"] = (
            segment,
            at + position,
            NO_MARKER,
        )
        pieces: list[bytes] = []
        bounds = np.stack([at + BATCH_HEADER_BYTES, at + batches["size"]], axis=1)
        end = int(at[-1] + batches["size"][-1])
        length = end
        columns = (at, *(batches[name] for name in ("size", "magic", "attributes", "crc")))
        facts = zip(*(column.tolist() for column in columns), strict=True)
        for row, (where, size, magic, attributes, crc) in enumerate(facts):
            entry = buffer.data[where : where + size]
            if magic != MAGIC or size < BATCH_HEADER_BYTES or crc32c(entry[CHECKED_AT:]) != crc:
                _check_legacy(batches[row], entry, path)
            elif attributes & CONTROL:
                batches[row]["marker"] = _marker(batches[row], entry, path)
            if magic == MAGIC and not attributes & CODEC_MASK:
                continue
            piece = _payload(batches[row], entry, path)
            bounds[row] = length, length + len(piece)
            length += len(piece)
            pieces.append(piece)
            if length - end > DECOMPRESSED_BYTES:
                batches, bounds = batches[: row + 1], bounds[: row + 1]
                break
        if pieces:
            joined = b"".join([buffer[:end].tobytes(), *pieces, bytes(SLACK_BYTES)])
            buffer = np.frombuffer(joined, np.uint8).copy()
        records = self._records(batches, buffer, bounds, path)
        self._check_order(batches, records, path)
        return Chunk(batches, records)

    def _records(
        self, batches: Batches, payload: ByteArray, bounds: Int64Array, path: str
    ) -> Records:
        lowest = np.minimum(batches["base_offset"], batches["last_offset_delta"])
        negative = np.flatnonzero(np.minimum(lowest, batches["records_count"]) < 0)
        if len(negative):
            raise _corrupt(path, batches[negative[0]], "has a negative offset or count of records")
        endless = np.flatnonzero(
            batches["base_offset"] > MAX_LAST_OFFSET - batches["last_offset_delta"]
        )
        if len(endless):
            raise _corrupt(
                path, batches[endless[0]], "ends at offset 2^63 - 1: no offset can follow it"
            )
        room = bounds[:, 1] - bounds[:, 0]
        impossible = np.flatnonzero(batches["records_count"] * MIN_RECORD_BYTES > room)
        if len(impossible):
            raise _corrupt(path, batches[impossible[0]], "holds fewer records than it says")
        count = int(batches["records_count"].sum())
        records = Records(
            offsets=np.empty(count, np.int64),
            timestamps=np.empty(count, np.int64),
            keys=np.empty((count, 2), np.uint64),
            contents=np.empty((count, 2), np.uint64),
            kinds=np.empty(count, np.uint8),
            batches=np.empty(count, np.int64),
        )
        bases = np.stack(
            [batches[name] for name in ("base_offset", "base_timestamp", "records_count")], axis=1
        )
        _, bad = read_records(payload, bounds, bases, self._secret, tuple(records))
        if bad >= 0:
            raise _corrupt(path, batches[bad], "has records that do not parse")
        is_stamped = (batches["attributes"] & LOG_APPEND_TIME != 0) & (batches["magic"] == MAGIC)
        stamped = is_stamped[records.batches]
        records.timestamps[stamped] = batches["max_timestamp"][records.batches[stamped]]
        return records

    def _check_order(self, batches: Batches, records: Records, path: str) -> None:
        before = np.concatenate([[self._next_offset], batches["last_offset"][:-1] + 1])
        wrong = np.flatnonzero(batches["base_offset"] < before)
        if not len(wrong):
            offsets, rows = records.offsets, records.batches
            is_bad = offsets < batches["base_offset"][rows]
            is_bad |= offsets > batches["last_offset"][rows]
            is_bad[1:] |= offsets[1:] <= offsets[:-1]
            wrong = rows[is_bad]
        if len(wrong):
            raise _corrupt(path, batches[wrong[0]], "has offsets that do not ascend")
        self._next_offset = int(batches["last_offset"][-1]) + 1


def decoded(path: str, batch: np.void) -> list[Record]:
    """The records of one batch, by the storage layer's reader of single records."""
    position = int(batch["position"])
    with LOCAL.open_named(path) as log:
        entry = os.pread(log.fileno(), int(batch["size"]), position)
    header = legacy_messages.decode_header(entry, position, path)
    return legacy_messages.decode_records(entry, header, path, position)


def _framed(path: str) -> Iterator[tuple[ByteArray, int, Int64Array]]:
    """Buffers of whole entries, each with its place in the file and where its entries begin."""
    with LOCAL.open_named(path) as log:
        stop = os.fstat(log.fileno()).st_size
        position, wanted = 0, READ_BYTES
        while position < stop:
            length = min(wanted, stop - position)
            buffer = np.zeros(length + SLACK_BYTES, np.uint8)
            _read_into(log.fileno(), buffer.data[:length], position, path)
            positions = np.empty(length // 26 + 1, np.int64)
            count, framed, is_bad = frame_entries(buffer, length, positions)
            if count:
                yield buffer, position, positions[:count]
            position += framed
            wanted = READ_BYTES
            if is_bad or (position < stop and stop - position < MAGIC_AT + 1):
                raise CorruptFileError(path, position, "no batch begins here")
            if not count:
                wanted = int.from_bytes(buffer[8:12].tobytes(), "big") + LOG_OVERHEAD_BYTES
                if wanted > stop - position:
                    raise CorruptFileError(path, position, "the batch is cut short")


def _read_into(log: int, view: memoryview, position: int, path: str) -> None:
    done = 0
    while done < len(view):
        read = os.preadv(log, [view[done:]], position + done)
        if not read:
            raise CorruptFileError(path, position + done, "the file has shrunk")
        done += read


def _headers(buffer: ByteArray, at: Int64Array) -> Batches:
    """A row for each entry; of a legacy one, only what every format has in the same place."""
    raw = buffer[np.minimum(at[:, None] + np.arange(BATCH_HEADER_BYTES), len(buffer) - 1)]
    header = np.ascontiguousarray(raw).view(HEADER).reshape(-1)
    batches = np.empty(len(at), BATCH)
    for name in HEADER.names or ():
        batches[name] = header[name]
    batches["size"] = batches["length"] + LOG_OVERHEAD_BYTES
    batches["last_offset"] = batches["base_offset"] + batches["last_offset_delta"]
    return batches


def _check_legacy(batch: np.void, entry: memoryview, path: str) -> None:
    """Check a message by its checksum. Raise CorruptFileError, also for what is not a message."""
    if batch["magic"] == MAGIC:
        raise _corrupt(path, batch, "does not match its CRC")
    header = legacy_messages.decode_header(entry, int(batch["position"]), path)
    legacy_messages.check_crc(entry, header, path, int(batch["position"]))


def _payload(batch: np.void, entry: memoryview, path: str) -> bytes:
    """The records of a compressed or legacy batch as they stand in a v2 batch; fills batch."""
    position = int(batch["position"])
    if batch["magic"] == MAGIC:
        if not batch["records_count"]:
            return b""
        codec = int(batch["attributes"]) & CODEC_MASK
        return decompress(codec, entry[BATCH_HEADER_BYTES:], path, position)
    header = legacy_messages.decode_header(entry, position, path)
    records = legacy_messages.decode_records(entry, header, path, position)
    if not all(0 <= r.offset - records[0].offset <= MAX_RELATIVE_OFFSET for r in records):
        raise _corrupt(path, batch, "has offsets that do not ascend")
    for name in ("leader_epoch", "producer_id", "producer_epoch", "base_sequence"):
        batch[name] = -1
    batch["attributes"] = header.attributes
    batch["max_timestamp"] = header.max_timestamp
    batch["base_timestamp"] = 0
    batch["base_offset"] = records[0].offset
    batch["last_offset"] = header.last_offset
    batch["last_offset_delta"] = header.last_offset - records[0].offset
    batch["records_count"] = len(records)
    return b"".join(record.encode(r, records[0].offset, 0) for r in records)


def _marker(batch: np.void, entry: memoryview, path: str) -> int:
    """The type that the first record of a control batch names; NO_MARKER if it has none."""
    position = int(batch["position"])
    header = legacy_messages.decode_header(entry, position, path)
    records = legacy_messages.decode_records(entry, header, path, position)
    if not records:
        return NO_MARKER
    try:
        return int(decode_type(records[0].key))
    except MalformedRecordError:
        return int(ControlType.UNKNOWN)


def _corrupt(path: str, batch: np.void, problem: str) -> CorruptFileError:
    return CorruptFileError(path, int(batch["position"]), f"the batch {problem}")
