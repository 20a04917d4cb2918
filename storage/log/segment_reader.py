"""Readers of a `.log` file that is not in use: its batches in order, or the next sound one.

The batches are read by their headers alone or whole (spec F-3). That is stricter than Kafka's
reader, which stops silently at a tail that is cut short: here a file has to end where a batch ends.
A message of format v0 or v1 is a batch, too.

A crash tears the end of a log: after the torn place there is nothing, zeros, or the rest of what
was being written. Where a batch with a right CRC follows, the damage is in the middle, and cutting
the log off there would lose what can still be read. So `first_sound_batch` looks for a batch at
every byte: of any message format, and of any codec, since only its framing and its CRC are looked
at (F-3, F-4).
"""

from collections.abc import Iterator
from struct import Struct
from typing import TYPE_CHECKING
from zlib import crc32

from crc32c import crc32c

from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.files.files import Files, OpenFile
from storage.files.local import LOCAL
from storage.formats.batch_header import (
    BATCH_HEADER_BYTES,
    CHECKED_AT,
    CRC_AT,
    LEGACY_CRC_AT,
    LENGTH_AT,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    MIN_LEGACY_LENGTH,
)
from storage.formats.control_record import ControlType, decode_coordinator_epoch, decode_type
from storage.formats.legacy_messages import check_crc, decode_header
from storage.formats.record import MalformedRecordError
from storage.formats.record_batch import BatchHeader, decode_records

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_HEADER_WINDOW_BYTES = 32 * 1024  # takes in many small batches, and costs little for a large one
_CHUNK_BYTES = 1024 * 1024


def read_batch_headers(
    log_path: str, start: int = 0, end: int | None = None, files: Files = LOCAL
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each batch between two positions, at which batches start.

    end: exclusive; None: the file's size. Raise CorruptFileError at a batch that passes it.
    """
    with files.open(log_path) as log:
        stop = log.entry.size_bytes if end is None else end
        for position, header, _ in _walk(log, log_path, (start, stop), _HEADER_WINDOW_BYTES):
            yield position, header


def read_batches(
    log_path: str, files: Files = LOCAL, start: int = 0
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Yield position, header and all bytes of each batch from a position on, at which one starts.

    The bytes stay valid. Raise CorruptFileError where a batch is damaged or cut short.
    """
    with files.open(log_path) as log:
        span = start, log.entry.size_bytes
        for position, header, batch in _walk(log, log_path, span, _CHUNK_BYTES, is_whole=True):
            check_crc(batch, header, log_path, position)
            yield position, header, batch


def _walk(
    log: OpenFile, path: str, span: tuple[int, int], window_bytes: int, is_whole: bool = False
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Yield position, header and bytes of each batch between two positions.

    Those are the first bytes alone, unless is_whole.
    """
    position, stop = span
    window, window_start = memoryview(b""), position
    while position < stop:
        at = position - window_start
        if at + BATCH_HEADER_BYTES > len(window):
            window, window_start, at = _read(log, position, stop, window_bytes), position, 0
        header = decode_header(window[at : at + BATCH_HEADER_BYTES], position, path)
        size = header.size_bytes
        if position + size > stop:
            _raise_cut_short(header, position, stop, path)
        if is_whole and at + size > len(window):
            window = _read(log, position, stop, max(window_bytes, size))
            window_start, at = position, 0
            if size > len(window):  # the file has shrunk
                _raise_cut_short(header, position, position + len(window), path)
        yield position, header, window[at : at + size]
        position += size


def _read(log: OpenFile, position: int, stop: int, size: int) -> memoryview:
    return memoryview(log.read(position, min(size, stop - position)))


def _raise_cut_short(header: BatchHeader, position: int, stop: int, path: str) -> None:
    problem = f"batch is cut short: {stop - position} of {header.size_bytes} bytes"
    raise CorruptFileError(path, position, problem)


def read_marker(
    header: BatchHeader, log_path: str, position: int, files: Files = LOCAL
) -> ControlType:
    """Return the kind of the marker in a control batch with a record.

    Raise CorruptFileError where it does not parse or is no marker.
    """
    batch = files.read_range(log_path, position, header.size_bytes)
    record = decode_records(batch, header, log_path, position)[0]
    try:
        kind = decode_type(record.key)
        if kind.is_marker:
            decode_coordinator_epoch(record.value)  # which has to be there
            return kind
    except MalformedRecordError as error:
        raise CorruptFileError(log_path, position, str(error)) from error
    problem = f"control record {kind.name} of producer {header.producer_id}, expected a marker"
    raise UnsupportedFormatError(log_path, position, problem)


_SEARCHED_BYTES = 4 * 1024 * 1024
_FRAMING = Struct(">qiiB")  # offset, length, leader epoch or CRC, magic
# candidates that look like a batch and are none may cost so many bytes of checksums in all
_CHECKED_AT_MOST = 1 << 30


def first_sound_batch(path: str, start: int, base_offset: int, files: Files = LOCAL) -> int | None:
    """Return the position of the first batch at or after start with a right CRC; None if none is.

    base_offset: of the segment; a batch of it has an offset up to 2^32 above that. Where bytes
    pretend to be batches so often that not all can be checked, the first unchecked one is returned.
    """
    with files.open(path) as log:
        return _first_sound_batch(log, start, base_offset)


def _first_sound_batch(log: OpenFile, start: int, base_offset: int) -> int | None:
    size_bytes = log.entry.size_bytes
    budget = _CHECKED_AT_MOST
    position = start
    while position + _FRAMING.size <= size_bytes:
        chunk = log.read(position, _SEARCHED_BYTES + _FRAMING.size)
        for at in _candidates(chunk, base_offset):
            candidate = position + int(at)
            offset, length, _, magic = _FRAMING.unpack_from(chunk, at)
            end = candidate + length + LOG_OVERHEAD_BYTES
            if offset < base_offset or end > size_bytes:
                continue
            budget -= end - candidate
            if budget < 0 or _is_sound(log, candidate, end, magic):
                return candidate
        position += _SEARCHED_BYTES
    return None


def _candidates(chunk: bytes, base_offset: int) -> "NDArray[np.intp]":
    """Positions with an offset near the segment's and a length that a batch can have."""
    import numpy as np  # nobody looks here but where something is damaged

    data = np.frombuffer(chunk, np.uint8)
    places = len(data) - _FRAMING.size + 1
    high = [(base_offset >> 32 << 32) + more for more in (0, 1 << 32)]
    matches = np.zeros(places, np.bool_)
    for offset in high:
        prefix = offset.to_bytes(9, "big")[1:5]
        one = np.ones(places, np.bool_)
        for i, byte in enumerate(prefix):
            one &= data[i : i + places] == byte
        matches |= one
    matches &= data[LENGTH_AT : LENGTH_AT + places] < 0x80  # the length is not negative
    found = np.flatnonzero(matches)
    lengths = sum(data[found + LENGTH_AT + i].astype(np.int64) << (24 - 8 * i) for i in range(4))
    return found[lengths >= MIN_LEGACY_LENGTH]


def _is_sound(log: OpenFile, start: int, end: int, magic: int) -> bool:
    if magic >= MAGIC and end - start < BATCH_HEADER_BYTES:
        return False
    batch = memoryview(log.read(start, end - start))
    if len(batch) < end - start:
        return False
    if magic >= MAGIC:
        stored, found = batch[CRC_AT:CHECKED_AT], crc32c(batch[CHECKED_AT:])
    else:
        stored, found = batch[LEGACY_CRC_AT:MAGIC_AT], crc32(batch[MAGIC_AT:])
    return bytes(stored) == found.to_bytes(4, "big")
