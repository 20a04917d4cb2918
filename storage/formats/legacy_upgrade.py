"""Messages of format v0 and v1, upgraded: their records in the form of v2, for the record kernels.

An entry is one message, or a wrapper whose value holds compressed messages. Each becomes a run of
v2 records with deltas against the base offset and base timestamp in the entry's row, which is
completed. Inner offsets of a v1 wrapper are relative: the last of them is the wrapper's own. A cut
inner message at the end is ignored, as Kafka's reader ignores it.

First the kernels, then `upgrade`, which calls them and decompresses what they do not take.
Source: Kafka, LegacyRecord, AbstractLegacyRecordBatch.DeepRecordsIterator, DataLogInputStream;
log-format F-7.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.codecs.compression import (
    MAX_DECOMPRESSED_BYTES,
    Codec,
    DecompressionError,
    decompress_into,
)
from storage.codecs.lz4_frame import with_header_checksum
from storage.codecs.payload_kernels import decompress_payload, tools_of_thread
from storage.errors import CorruptFileError
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BAD_MESSAGE,
    BAD_RECORD_OFFSET,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    LAST_OFFSET,
    LEGACY,
    MAGIC_ZERO,
    MAX_TIMESTAMP,
    MIN_MESSAGE_BYTES,
    OFFSETS_NOT_ASCENDING,
    OK,
    POSITION,
    PROBLEMS,
    RECORDS_COUNT,
    RECORDS_END,
    RECORDS_START,
    SIZE,
    SLACK_BYTES,
    ByteArray,
    Int64Array,
)
from storage.formats.batch_header import (
    CODEC_MASK,
    LEGACY_ATTRIBUTES_AT,
    LEGACY_TIMESTAMP_AT,
    LENGTH_AT,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC_AT,
)
from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import copy_bytes, load_be_int32, load_be_int64
from storage.kernels.varint_kernel import varint_bytes, write_varint

MAX_OFFSET_DELTA = 2**31 - 1

# why a kernel stopped, beyond what batch_columns knows
WRAPPER, NO_ROOM, NO_MESSAGES, BAD_WRAPPER_OFFSET, COMPRESSED_INSIDE, BAD_INNER_MAGIC = range(
    32, 38
)


@kernel
def first_out_of_order(rows: Int64Array, previous_offset: int) -> int:
    """The first row whose offsets do not begin after those before it; -1: there is none."""
    for i in range(rows.shape[0]):
        if rows[i, BASE_OFFSET] <= previous_offset:
            return i
        previous_offset = rows[i, LAST_OFFSET]
    return -1


@inlined
def _write_record(
    buffer: ByteArray, span: tuple[Any, Any], deltas: tuple[Any, Any], out: ByteArray, out_at: Any
) -> Any:
    """Write a message as a record of v2; the position after it, or -1 if the message is malformed.

    span: where its key length stands, where the message ends; there are 8 bytes at least between.
    deltas: of timestamp and offset.
    """
    key_at, end = span
    timestamp_delta, offset_delta = deltas
    key_length = max(np.int64(-1), load_be_int32(buffer, key_at))
    key_at += 4
    value_at = key_at + max(np.int64(0), key_length)
    if value_at + 4 > end:
        return np.int64(-1)
    value_length = max(np.int64(-1), load_be_int32(buffer, value_at))
    value_at += 4
    if value_length > end - value_at:
        return np.int64(-1)
    length = 2 + varint_bytes(timestamp_delta) + varint_bytes(offset_delta)
    length += varint_bytes(key_length) + max(np.int64(0), key_length)
    length += varint_bytes(value_length) + max(np.int64(0), value_length)
    out_at = write_varint(out, out_at, np.int64(length))
    out[out_at] = 0  # attributes
    out_at = write_varint(out, out_at + 1, timestamp_delta)
    out_at = write_varint(out, out_at, offset_delta)
    out_at = write_varint(out, out_at, key_length)
    if key_length > 0:
        copy_bytes(out, out_at, buffer, key_at, key_length)
        out_at += key_length
    out_at = write_varint(out, out_at, value_length)
    if value_length > 0:
        copy_bytes(out, out_at, buffer, value_at, value_length)
        out_at += value_length
    out[out_at] = 0  # headers
    return out_at + 1


@kernel
def upgrade_messages(
    buffer: ByteArray, file_position: int, rows: Int64Array, first: int, out: ByteArray, at: int
) -> tuple[int, int, int, int]:
    """Write the records of uncompressed messages to out, from row `first` and position `at` on.

    Rows of v2 are skipped. Returns the row and the position at which it stopped, why (OK: no
    row is left) and a detail.
    """
    for i in range(first, rows.shape[0]):
        if rows[i, ATTRIBUTES] & LEGACY == 0:
            continue
        if rows[i, ATTRIBUTES] & CODEC_MASK != 0:
            return i, at, WRAPPER, 0
        size = rows[i, SIZE]
        if at + size + size // 4 + SLACK_BYTES > out.shape[0]:
            return i, at, NO_ROOM, 0
        start = rows[i, POSITION] - file_position
        key_at = start + (MIN_MESSAGE_BYTES - 8)
        if rows[i, ATTRIBUTES] & MAGIC_ZERO == 0:
            key_at += 8
        end = _write_record(
            buffer, (key_at, start + size), (np.int64(0), np.int64(0)), out, np.int64(at)
        )
        if end < 0:
            return i, at, BAD_MESSAGE, 0
        rows[i, RECORDS_START] = at
        rows[i, RECORDS_END] = end
        at = end
    return rows.shape[0], at, OK, 0


@kernel
def upgrade_entries(
    entries: tuple[ByteArray, int, Int64Array],
    progress: tuple[int, int],
    inner: ByteArray,
    out: ByteArray,
    tools: Any,
) -> tuple[int, int, int, int]:
    """Do what upgrade_messages does, also for wrappers that kernels decompress.

    entries: a buffer, where it begins in its file, and rows. progress: the row and the position to
    begin with. inner: a buffer for what one wrapper holds. tools: see payload_kernels.
    """
    buffer, file_position, rows = entries
    done, at = progress
    while True:
        done, at, code, detail = upgrade_messages(buffer, file_position, rows, done, out, at)
        if code != WRAPPER:
            return done, at, code, detail
        start = rows[done, POSITION] - file_position
        magic: Any = np.int64(0 if rows[done, ATTRIBUTES] & MAGIC_ZERO else 1)
        value_at, value_end = wrapper_value(buffer, start, rows[done, SIZE], magic)
        if value_at < 0:
            return done, at, WRAPPER, 0
        codec = rows[done, ATTRIBUTES] & CODEC_MASK
        room = (np.int64(0), np.int64(inner.shape[0] - SLACK_BYTES))
        length: Any = np.int64(
            decompress_payload(codec, buffer, (value_at, value_end), inner, room, tools)
        )
        if length < 0 or at + length + length // 4 + SLACK_BYTES > out.shape[0]:
            return done, at, WRAPPER, 0
        at, code, detail = upgrade_wrapper(inner, length, rows[done], out, at)
        if code != OK:
            return done, at, code, detail
        done += 1


@kernel
def wrapper_value(buffer: ByteArray, start: int, size: int, magic: int) -> tuple[int, int]:
    """Return where the value of the message at `start` begins and ends; -1 and -1: nowhere."""
    end: Any = np.int64(start) + size
    key_at = start + (MIN_MESSAGE_BYTES - 8) + 8 * magic
    length_at = key_at + 4 + max(np.int64(0), load_be_int32(buffer, key_at))
    if length_at + 4 > end:
        return -1, -1
    length = load_be_int32(buffer, length_at)
    if length < 0 or length > end - length_at - 4:
        return -1, -1
    return length_at + 4, length_at + 4 + length


@kernel
def upgrade_wrapper(
    inner: ByteArray, length: int, row: Int64Array, out: ByteArray, at: int
) -> tuple[int, int, int]:
    """Write the records of the messages in inner[:length], those of a wrapper, to out at `at`.

    Completes the wrapper's row. Returns the position after the records, code and detail.
    """
    count, last, code = _walk_inner(inner, length)
    if code != OK:
        return at, code, count
    absolute_base = np.int64(0)
    if row[ATTRIBUTES] & MAGIC_ZERO == 0 and row[LAST_OFFSET] != 0:  # 0: as some clients left it
        if row[LAST_OFFSET] < last:
            return at, BAD_WRAPPER_OFFSET, int(last)
        absolute_base = row[LAST_OFFSET] - last
    is_stamped = row[ATTRIBUTES] & LOG_APPEND_TIME != 0
    base_offset = absolute_base + load_be_int64(inner, 0)
    base_timestamp = np.int64(0)
    previous_delta: Any = np.int64(-1)
    start: Any = np.int64(at)
    out_at = start
    position = np.int64(0)
    for j in range(count):
        end = position + LOG_OVERHEAD_BYTES + load_be_int32(inner, position + LENGTH_AT)
        key_at = position + MIN_MESSAGE_BYTES - 8
        timestamp = np.int64(-1)
        if inner[position + MAGIC_AT] == 1:
            own = load_be_int64(inner, position + LEGACY_TIMESTAMP_AT)
            timestamp = row[MAX_TIMESTAMP] if is_stamped else own
            key_at += 8
        if j == 0:
            base_timestamp = timestamp
        delta = absolute_base + load_be_int64(inner, position) - base_offset
        if delta <= previous_delta or delta > MAX_OFFSET_DELTA:
            return at, BAD_RECORD_OFFSET, j
        previous_delta = delta
        out_at = _write_record(
            inner, (key_at, end), (timestamp - base_timestamp, delta), out, out_at
        )
        if out_at < 0:
            return at, BAD_MESSAGE, j
        position = end
    row[BASE_OFFSET] = base_offset
    row[LAST_OFFSET] = max(row[LAST_OFFSET], absolute_base + last)
    row[BASE_TIMESTAMP] = base_timestamp
    row[RECORDS_COUNT] = count
    row[RECORDS_START] = start
    row[RECORDS_END] = out_at
    return out_at, OK, 0


@inlined
def _walk_inner(inner: ByteArray, length: int) -> tuple[Any, Any, Any]:
    """How many whole messages there are, the offset field of the last, and what is wrong."""
    count = 0
    last = np.int64(0)
    at = np.int64(0)
    while at + LOG_OVERHEAD_BYTES <= length:
        size = load_be_int32(inner, at + LENGTH_AT) + LOG_OVERHEAD_BYTES
        if size < MIN_MESSAGE_BYTES:
            return count, last, BAD_MESSAGE
        if size > length - at:
            break
        magic = inner[at + MAGIC_AT]
        if magic > 1:
            return count, last, BAD_INNER_MAGIC
        if size < MIN_MESSAGE_BYTES + 8 * np.int64(magic):
            return count, last, BAD_MESSAGE
        if inner[at + LEGACY_ATTRIBUTES_AT] & np.uint8(CODEC_MASK) != 0:
            return count, last, COMPRESSED_INSIDE
        last = load_be_int64(inner, at)
        at += size
        count += 1
    return count, last, OK if count else NO_MESSAGES


UPGRADED_BYTES = 16 << 20  # upgraded at once, unless a single entry holds more

_PROBLEMS = PROBLEMS | {
    NO_MESSAGES: "the wrapper holds no message",
    BAD_WRAPPER_OFFSET: "the wrapper's offset is below {}, that of its last message",
    COMPRESSED_INSIDE: "message {} of the wrapper is compressed itself",
    BAD_INNER_MAGIC: "message {} of the wrapper is of no known message format",
}

_NO_BYTES: ByteArray = np.empty(0, np.uint8)

TakeArray = Callable[[str, int], ByteArray]  # by name: at least so many bytes, reused each time


class FramedEntries(NamedTuple):
    """Framed entries of a log file in a buffer."""

    path: str
    buffer: ByteArray
    file_position: int  # of buffer[0]
    rows: Int64Array  # (entries, BATCH_COLUMNS)


class Upgraded(NamedTuple):
    """How far the legacy entries were upgraded, and where their records stand."""

    done: int  # rows from the top that are complete; the others are left for later
    records: ByteArray  # each row's in [RECORDS_START]:[RECORDS_END], SLACK_BYTES after the last
    problem: CorruptFileError | None  # what is wrong with row `done`


def has_legacy(rows: Int64Array) -> bool:
    return bool((rows[:, ATTRIBUTES] & LEGACY != 0).any())


def upgrade(entries: FramedEntries, previous_offset: int, take: TakeArray) -> Upgraded:
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


def _in_order(entries: FramedEntries, previous_offset: int, upgraded: Upgraded) -> Upgraded:
    """Cut at the first row that does not begin after the one before it."""
    row = first_out_of_order(entries.rows[: upgraded.done], previous_offset)
    if row < 0:
        return upgraded
    problem = _problem(entries, row, OFFSETS_NOT_ASCENDING, int(entries.rows[row, BASE_OFFSET]))
    return Upgraded(row, upgraded.records, problem)


def _problem(entries: FramedEntries, row: int, code: int, detail: int) -> CorruptFileError:
    position = int(entries.rows[row, POSITION])
    return CorruptFileError(entries.path, position, _PROBLEMS[code].format(detail))


def _room(message_bytes: int) -> int:
    """Bytes of buffer that surely take the records of messages of so many bytes.

    A record of v2 has at most 32 bytes beside key and value, where a message has 26 at least.
    """
    return message_bytes + message_bytes // 4 + SLACK_BYTES


def _decompressed(entries: FramedEntries, row: int, take: TakeArray) -> tuple[ByteArray, int]:
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


def _wrapper_value(entries: FramedEntries, row: int) -> memoryview:
    position, size, attributes = entries.rows[row, [POSITION, SIZE, ATTRIBUTES]].tolist()
    start, magic = position - entries.file_position, 0 if attributes & MAGIC_ZERO else 1
    value_at, value_end = wrapper_value(entries.buffer, start, size, magic)
    if value_at < 0:
        problem = f"the wrapper's value does not end within its {size} bytes"
        raise CorruptFileError(entries.path, position, problem)
    return entries.buffer.data[value_at:value_end]


def take_fresh(_name: str, length: int) -> NDArray[np.uint8]:
    """A TakeArray for an upgrade now and then."""
    return np.empty(length, np.uint8)
