"""The batches of a `.log` file in order, by their headers alone or whole (spec F-3).

Stricter than Kafka's reader, which stops silently at a tail that is cut short: here a file has to
end where a batch ends. A message of format v0 or v1 is a batch, too.
"""

from collections.abc import Iterator

from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.files.files import Files, OpenFile
from storage.files.local import LOCAL
from storage.formats.batch_header import BATCH_HEADER_BYTES
from storage.formats.control_record import ControlType, decode_coordinator_epoch, decode_type
from storage.formats.legacy_messages import check_crc, decode_header
from storage.formats.record import MalformedRecordError
from storage.formats.record_batch import BatchHeader, decode_records

_HEADER_WINDOW_BYTES = 32 * 1024  # takes in many small batches, and costs little for a large one
_CHUNK_BYTES = 1024 * 1024


def read_batch_headers(
    log_path: str, start: int = 0, end: int | None = None, files: Files = LOCAL
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each batch between two positions, at which batches start.

    end: exclusive; the file's size if not given. Raise CorruptFileError at a batch that passes it.
    """
    with files.open(log_path) as log:
        stop = log.entry.size_bytes if end is None else end
        for position, header, _ in _walk(log, log_path, (start, stop), _HEADER_WINDOW_BYTES):
            yield position, header


def read_batches(
    log_path: str, verify_crc: bool = True, files: Files = LOCAL, start: int = 0
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Yield position, header and all bytes of each batch from a position on, at which one starts.
    The bytes stay valid.

    Raise CorruptFileError where a batch is damaged or cut short.
    """
    with files.open(log_path) as log:
        span = start, log.entry.size_bytes
        for position, header, batch in _walk(log, log_path, span, _CHUNK_BYTES, is_whole=True):
            if verify_crc:
                check_crc(batch, header, log_path, position)
            yield position, header, batch


def _walk(
    log: OpenFile, path: str, span: tuple[int, int], window_bytes: int, is_whole: bool = False
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Yield position, header and bytes of each batch between two positions; its first bytes, unless
    is_whole.
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
) -> tuple[ControlType, int, int]:
    """Give kind, coordinator epoch and timestamp of the marker in a control batch with a record.

    Raise CorruptFileError where it does not parse or is no marker.
    """
    batch = files.read_range(log_path, position, header.size_bytes)
    record = decode_records(batch, header, log_path, position)[0]
    try:
        kind = decode_type(record.key)
        if kind.is_marker:
            return kind, decode_coordinator_epoch(record.value), record.timestamp
    except MalformedRecordError as error:
        raise CorruptFileError(log_path, position, str(error)) from error
    problem = f"control record {kind.name} of producer {header.producer_id}, expected a marker"
    raise UnsupportedFormatError(log_path, position, problem)
