"""A kernel that writes the lines of a batch's records, and leaves to Python what is not plain.

Plain is a record without headers, whose key and value are null, text or no UTF-8 at all; as text
(not JSON), only if it is ASCII that prints. The lines are those of `record_lines`, byte for byte.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compactor.inspection.dumped_log import RecordBlock
from storage.formats.batch_columns import SLACK_BYTES, next_record
from storage.kernels.kernel import inlined, kernel

ByteArray = NDArray[np.uint8]
Int64Array = NDArray[np.int64]

NOT_PLAIN = -1
MOST_BYTES_A_BYTE = 6  # of a control character in JSON
LINE_BYTES = 160  # of a line at most, but for key and value
_SHORT_ESCAPES = np.zeros(0x20, np.uint8)
for _byte, _letter in ((8, "b"), (9, "t"), (10, "n"), (12, "f"), (13, "r")):
    _SHORT_ESCAPES[_byte] = ord(_letter)
_WORDS = {
    False: ("  record  offset ", "  timestamp ", "  key ", "  value ", "\n"),
    True: (
        *('{"kind": "record", "offset": ', ', "timestamp": ', ', "key": ', ', "value": '),
        ', "headers": []}\n',
    ),
}


@inlined
def _put(out: ByteArray, at: Any, words: tuple[ByteArray, Any], number: Any) -> Any:
    """Copy word `number`."""
    letters, edges = words
    for i in range(edges[number], edges[number + 1]):
        out[at] = letters[i]
        at += 1
    return at


@inlined
def _put_number(out: ByteArray, at: Any, number: Any) -> Any:
    """Write a number in decimal, the smallest int64 too."""
    left = np.uint64(number)
    if number < 0:
        out[at] = np.uint8(45)
        at += 1
        left = np.uint64(0) - left
    digits: Any = np.int64(1)
    rest = left // np.uint64(10)
    while rest > 0:
        digits += 1
        rest //= np.uint64(10)
    for i in range(digits - 1, -1, -1):
        out[at + i] = np.uint8(48 + left % np.uint64(10))
        left //= np.uint64(10)
    return at + digits


@inlined
def _digit(number: Any) -> Any:
    return np.uint8(48 + number if number < 10 else 87 + number)


@inlined
def _utf8_bytes(data: ByteArray, at: Any, end: Any) -> Any:
    """Return the bytes of the character that begins with a byte of 0x80 or more; 0: none."""
    first = data[at]
    if first < 0xC2 or first > 0xF4:
        return 0
    count: Any = np.int64(2 if first < 0xE0 else 3 if first < 0xF0 else 4)
    if at + count > end:
        return 0
    second = data[at + 1]
    least = 0xA0 if first == 0xE0 else 0x90 if first == 0xF0 else 0x80
    most = 0x9F if first == 0xED else 0x8F if first == 0xF4 else 0xBF
    if second < least or second > most:
        return 0
    for i in range(2, count):
        if data[at + i] < 0x80 or data[at + i] > 0xBF:
            return 0
    return count


@inlined
def _put_hex(data: ByteArray, at: Any, end: Any, out: ByteArray, out_at: Any, words: Any) -> Any:
    out_at = _put(out, out_at, words, 5)
    for i in range(at, end):
        out[out_at] = _digit(np.int64(data[i] >> 4))
        out[out_at + 1] = _digit(np.int64(data[i] & 0xF))
        out_at += 2
    return _put(out, out_at, words, 6)


@inlined
def _put_data(data: ByteArray, span: Any, out: ByteArray, start: Any, forms: Any) -> Any:
    """Write a key or value as JSON; return where it ends, or NOT_PLAIN.

    span: where it begins and ends; an end below the start stands for null.
    """
    at, end = span
    words, escapes, in_json = forms
    if end < at:
        return _put(out, start, words, 7)
    out_at = start
    out[out_at] = np.uint8(34)
    out_at += 1
    i: Any = np.int64(at)
    is_plain = True
    while i < end:
        byte = data[i]
        if byte >= 0x80:
            count = _utf8_bytes(data, i, end)
            if count == 0:
                return _put_hex(data, at, end, out, start, words)
            is_plain = False
            for _ in range(count):
                out[out_at] = data[i]
                out_at += 1
                i += 1
            continue
        if byte == 34 or byte == 92:
            out[out_at] = np.uint8(92)
            out[out_at + 1] = byte
            out_at += 2
        elif byte >= 0x20:
            is_plain &= byte != 0x7F
            out[out_at] = byte
            out_at += 1
        elif escapes[byte] != 0:
            out[out_at] = np.uint8(92)
            out[out_at + 1] = escapes[byte]
            out_at += 2
        else:
            out[out_at] = np.uint8(92)
            out[out_at + 1] = np.uint8(117)
            out[out_at + 2] = out[out_at + 3] = np.uint8(48)
            out[out_at + 4] = _digit(np.int64(byte >> 4))
            out[out_at + 5] = _digit(np.int64(byte & 0xF))
            out_at += 6
        i += 1
    out[out_at] = np.uint8(34)
    if not is_plain and not in_json:
        return np.int64(NOT_PLAIN)
    return out_at + 1


class LineForms(NamedTuple):
    """What the lines are written with."""

    words: tuple[ByteArray, Int64Array]  # around the fields, one after the other; their edges
    escapes: ByteArray
    in_json: bool


class PlainBatch(NamedTuple):
    """The fields of a batch's header that its records are read with."""

    records: int
    base_offset: int
    last_offset: int
    base_timestamp: int  # or that of the log append
    has_append_time: bool


@kernel
def write_record_lines(
    payload: ByteArray, end: int, batch: PlainBatch, forms: LineForms, out: ByteArray
) -> int:
    """Write a line for each record of a batch.

    payload: its records, not compressed, with SLACK_BYTES after end. out: with room for
    MOST_BYTES_A_BYTE for each byte and LINE_BYTES for each record. Returns the bytes written, or
    NOT_PLAIN where a record is not plain or not sound.
    """
    count, base_offset, last_offset, base_timestamp, has_append_time = batch
    words = forms.words
    at: Any = np.int64(0)
    out_at: Any = np.int64(0)
    previous: Any = np.int64(base_offset - 1)
    for _ in range(count):
        record = next_record(payload, at, end)
        if not record.is_sound or record.headers_at + 1 != record.end:
            return NOT_PLAIN  # it has headers, or is not sound
        at = record.end
        offset = base_offset + record.offset_delta
        if offset <= previous or offset > last_offset:
            return NOT_PLAIN
        previous = offset
        delta = record.time_delta
        timestamp = base_timestamp if has_append_time else base_timestamp + delta
        if not has_append_time and (delta < 0) != (timestamp < base_timestamp):
            return NOT_PLAIN  # beyond 64 bits
        if timestamp == -1:
            return NOT_PLAIN  # it has none
        out_at = _put_number(out, _put(out, out_at, words, 0), offset)
        out_at = _put_number(out, _put(out, out_at, words, 1), timestamp)
        out_at = _put(out, out_at, words, 2)
        at_key, length = record.key_at, record.key_length
        span = at_key, at_key + length if length >= 0 else np.int64(-1)
        out_at = _put_data(payload, span, out, out_at, forms)
        if out_at < 0:
            return NOT_PLAIN
        out_at = _put(out, out_at, words, 3)
        at_value, length = record.value_at, record.value_length
        span = at_value, at_value + length if length >= 0 else np.int64(-1)
        out_at = _put_data(payload, span, out, out_at, forms)
        if out_at < 0:
            return NOT_PLAIN
        out_at = _put(out, out_at, words, 4)
    return int(out_at) if at == end else NOT_PLAIN


class KernelLines:
    """Lines of blocks, with buffers that are used again."""

    def __init__(self, in_json: bool) -> None:
        words = (*_WORDS[in_json], '{"hex": "', '"}', "null")
        edges = np.cumsum([0, *map(len, words)])
        letters = np.frombuffer("".join(words).encode(), np.uint8)
        self._forms = LineForms((letters, edges), _SHORT_ESCAPES, in_json)
        self._payload, self._out = np.empty(0, np.uint8), np.empty(0, np.uint8)

    def of(self, block: RecordBlock) -> bytes | None:
        """Return the lines of a batch; None where Python has to make them.

        Raise CorruptFileError where the batch does not decompress.
        """
        header, data = block.header, block.payload()
        end = len(data)
        if len(self._payload) < end + SLACK_BYTES:
            self._payload = np.zeros(2 * end + SLACK_BYTES, np.uint8)
        self._payload.data[:end] = data
        room = MOST_BYTES_A_BYTE * end + LINE_BYTES * min(header.records_count, end)
        if len(self._out) < room:
            self._out = np.empty(2 * room, np.uint8)
        is_stamped = header.is_log_append_time
        time = header.max_timestamp if is_stamped else header.base_timestamp
        batch = PlainBatch(
            header.records_count, header.base_offset, header.last_offset, time, is_stamped
        )
        size = write_record_lines(self._payload, end, batch, self._forms, self._out)
        return None if size == NOT_PLAIN else self._out[:size].tobytes()
