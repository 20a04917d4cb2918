"""Whether all that was appended to a log since a run is still there, batch for batch.

Brokers give offsets without a gap. Where one is missing, or a batch has a delete horizon, a
cleaning has gone over it, and a tombstone may be gone that hid what an undoing would bring back. A
replica that was copied from one that had been cleaned looks the same, and is taken for the same.
"""

import os

from compactor.host.printable import offset_range
from compactor.originals.kept_manifest import LogBefore
from compactor.originals.log_states import ChangedSinceError
from storage.errors import CorruptFileError
from storage.file_names import LOG, file_name
from storage.files.files import Files
from storage.formats import legacy_messages
from storage.formats.batch_header import MAGIC
from storage.formats.record_batch import BatchHeader
from storage.log.log_dir import PartitionListing
from storage.log.segment_reader import read_batch_headers


def check_appended(listing: PartitionListing, before: LogBefore) -> None:
    """Raise ChangedSinceError where something of it is missing, CorruptFileError or OSError.

    A torn end is left to whoever recovers the log.
    """
    files, segments = listing.access, listing.segments
    active = before.segments[-1]
    end_offset = before.end_offset
    for segment in segments:
        name = file_name(segment.base_offset, LOG)
        if name < active.name:
            continue
        start = active.size_bytes if name == active.name else 0
        if name != active.name and segment.base_offset != end_offset:
            raise _missing(name, end_offset, segment.base_offset)
        try:
            path = os.path.join(listing.path, name)
            for position, header in read_batch_headers(path, start, files=files):
                extent = _extent(files, path, position, header)
                _check_batch(name, header, extent, end_offset)
                end_offset = header.next_offset
        except CorruptFileError:
            if segment != segments[-1]:
                raise


def _check_batch(name: str, header: BatchHeader, extent: tuple[int, int], end_offset: int) -> None:
    """Whether a batch begins at the end of the log before it, and has all of its records."""
    first_offset, count = extent
    if first_offset != end_offset:
        raise _missing(name, end_offset, first_offset)
    if count != header.next_offset - first_offset:
        raise _missing(name, first_offset, header.next_offset, "some of ")
    if header.delete_horizon_ms is not None:
        seen = f"the batch at offset {first_offset} has a delete horizon"
        raise ChangedSinceError(f"cleaned since: {name}, written after the run: {seen}")


def _extent(files: Files, path: str, position: int, header: BatchHeader) -> tuple[int, int]:
    """The first offset of a batch, and how many records it has."""
    if header.magic == MAGIC or not header.codec:
        return header.base_offset, header.records_count
    entry = files.read_range(path, position, header.size_bytes)
    records = legacy_messages.decode_records(entry, header, path, position)
    return records[0].offset, len(records)


def _missing(name: str, first: int, end: int, share: str = "") -> ChangedSinceError:
    seen = f"missing: {share}{offset_range(first, end - 1)}"
    return ChangedSinceError(f"cleaned or deleted since: {name}, written after the run: {seen}")
