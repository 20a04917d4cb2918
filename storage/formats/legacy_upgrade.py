"""Messages of format v0 and v1, upgraded: their records in the form of v2, for the record kernels.

An entry is one message, or a wrapper whose value holds compressed messages. Each becomes a run of
v2 records with deltas against the base offset and base timestamp in the entry's row, which is
completed. Inner offsets of a v1 wrapper are relative to what makes the last of them the wrapper's
own; a cut inner message at the end is ignored, as by Kafka's reader.
The kernels are in `legacy_records`.
Source: Kafka, LegacyRecord, AbstractLegacyRecordBatch.DeepRecordsIterator, DataLogInputStream;
log-format F-7.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.codecs.compression import (
    MAX_DECOMPRESSED_BYTES,
    Codec,
    DecompressionError,
    decompress_into,
)
from storage.codecs.lz4_frame import with_header_checksum
from storage.codecs.payload_kernels import tools_of_thread
from storage.errors import CorruptFileError
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    LEGACY,
    MAGIC_ZERO,
    MIN_MESSAGE_BYTES,
    OFFSETS_NOT_ASCENDING,
    OK,
    POSITION,
    PROBLEMS,
    SIZE,
    SLACK_BYTES,
    ByteArray,
    Int64Array,
)
from storage.formats.batch_header import (
    CODEC_MASK,
)
from storage.formats.legacy_records import (
    BAD_INNER_MAGIC,
    BAD_WRAPPER_OFFSET,
    COMPRESSED_INSIDE,
    NO_MESSAGES,
    NO_ROOM,
    WRAPPER,
    first_out_of_order,
    upgrade_entries,
    upgrade_wrapper,
)

UPGRADED_BYTES = 16 << 20  # upgraded at once, unless a single entry holds more

_PROBLEMS = PROBLEMS | {
    NO_MESSAGES: "the wrapper holds no message",
    BAD_WRAPPER_OFFSET: "the wrapper's offset is below {}, that of its last message",
    COMPRESSED_INSIDE: "message {} of the wrapper is compressed itself",
    BAD_INNER_MAGIC: "message {} of the wrapper is of no known message format",
}

_NO_BYTES: ByteArray = np.empty(0, np.uint8)

TakeArray = Callable[[str, int], ByteArray]  # by name: at least so many bytes, reused each time


class Entries(NamedTuple):
    """Framed entries of a log file in a buffer."""

    path: str
    buffer: ByteArray
    file_position: int  # of buffer[0]
    rows: Int64Array  # (entries, BATCH_COLUMNS)


class Upgraded(NamedTuple):
    """How far the legacy entries were upgraded, and where their records stand."""

    done: int  # rows from the top that are complete; the others are left for later
    records: ByteArray  # each row's in [RECORDS_START]:[RECORDS_END], SLACK_BYTES behind the last
    problem: CorruptFileError | None  # what is wrong with row `done`


def has_legacy(rows: Int64Array) -> bool:
    return bool((rows[:, ATTRIBUTES] & LEGACY != 0).any())


def upgrade(entries: Entries, previous_offset: int, take: TakeArray) -> Upgraded:
    """Complete the rows of legacy entries from the top on, as many as UPGRADED_BYTES have room for.

    One at least, unless it is damaged. previous_offset: the last offset before the first row.
    """
    rows, out = entries.rows, take("upgraded", UPGRADED_BYTES + SLACK_BYTES)
    inner = take("inner", UPGRADED_BYTES + SLACK_BYTES) if _has_wrapper(rows) else _NO_BYTES
    at, done = 0, 0
    problem = None
    while done < len(rows):
        done, at, code, detail = upgrade_entries(
            (entries.buffer, entries.file_position, rows), (done, at), inner, out, tools_of_thread()
        )
        needed = int(rows[done, SIZE]) if code != OK else 0
        if code == WRAPPER:  # that the kernels do not take
            try:
                inner, length = _decompressed(entries, done, take)
            except CorruptFileError as error:
                problem = error
                break
            code, needed = NO_ROOM, length
            if at + _room(length) <= len(out):
                at, code, detail = upgrade_wrapper(inner, length, rows[done], out, at)
                done += code == OK
        if code == NO_ROOM:
            if at:
                break
            out = take("upgraded", _room(needed))
        elif code != OK:
            problem = _problem(entries, done, code, detail)
            break
    return _in_order(entries, previous_offset, Upgraded(done, out, problem))


def _has_wrapper(rows: Int64Array) -> bool:
    attributes = rows[:, ATTRIBUTES]
    return bool(((attributes & LEGACY != 0) & (attributes & CODEC_MASK != 0)).any())


def _in_order(entries: Entries, previous_offset: int, upgraded: Upgraded) -> Upgraded:
    """Cut at the first row that does not begin behind the one before it."""
    row = first_out_of_order(entries.rows[: upgraded.done], previous_offset)
    if row < 0:
        return upgraded
    problem = _problem(entries, row, OFFSETS_NOT_ASCENDING, int(entries.rows[row, BASE_OFFSET]))
    return Upgraded(row, upgraded.records, problem)


def _problem(entries: Entries, row: int, code: int, detail: int) -> CorruptFileError:
    position = int(entries.rows[row, POSITION])
    return CorruptFileError(entries.path, position, _PROBLEMS[code].format(detail))


def _room(message_bytes: int) -> int:
    """Bytes of buffer that surely take the records of messages of so many bytes.

    A record of v2 has at most 32 bytes beside key and value, where a message has 26 at least.
    """
    return message_bytes + message_bytes // 4 + SLACK_BYTES


def _decompressed(entries: Entries, row: int, take: TakeArray) -> tuple[ByteArray, int]:
    """The messages in a wrapper: a buffer and how much of it they fill."""
    value = _wrapper_value(entries, row)
    codec = int(entries.rows[row, ATTRIBUTES]) & CODEC_MASK
    position = int(entries.rows[row, POSITION])
    if codec == Codec.LZ4 and entries.rows[row, ATTRIBUTES] & MAGIC_ZERO:
        value = memoryview(with_header_checksum(value))  # it is wrong in v0 (F-8.4)
    room = max(UPGRADED_BYTES, 4 * len(value))
    while True:
        inner = take("inner", min(room, MAX_DECOMPRESSED_BYTES) + SLACK_BYTES)
        try:
            length = decompress_into(codec, value, inner[: len(inner) - SLACK_BYTES], 0)
        except DecompressionError as error:
            raise CorruptFileError(entries.path, position, str(error)) from error
        if length is not None:
            return inner, length
        if room >= MAX_DECOMPRESSED_BYTES:
            problem = f"the wrapper decompresses to more than {MAX_DECOMPRESSED_BYTES} bytes"
            raise CorruptFileError(entries.path, position, problem)
        room = 4 * room


def _wrapper_value(entries: Entries, row: int) -> memoryview:
    position, size, attributes = entries.rows[row, [POSITION, SIZE, ATTRIBUTES]].tolist()
    start = position - entries.file_position
    entry = entries.buffer.data[start : start + size]
    key_at = MIN_MESSAGE_BYTES - 8 if attributes & MAGIC_ZERO else MIN_MESSAGE_BYTES
    length_at = key_at + 4 + max(0, _int32(entry, key_at))
    value_at = length_at + 4
    length = _int32(entry, length_at) if value_at <= size else -1
    if not 0 <= length <= size - value_at:
        problem = f"the wrapper's value does not end within its {size} bytes"
        raise CorruptFileError(entries.path, position, problem)
    return entry[value_at : value_at + length]


def _int32(data: memoryview, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big", signed=True)


def take_fresh(_name: str, length: int) -> NDArray[np.uint8]:
    """A TakeArray for an upgrade now and then."""
    return np.empty(length, np.uint8)
