"""Check whether a broker may start on a log: look at what a recovery of its end does not look at.

A broker that starts reads neither the middle of a log nor a time index that is well formed. It goes
on without a segment that is missing, and its retention believes a time index of zeros.
"""

import os
from contextlib import suppress

from compactor.log_checks import missing_offsets
from compactor.log_dirs.survey import has_batch_from, last_time_entry_ms
from compactor.reason_codes import Reason, ReasonCode
from storage.errors import CorruptFileError
from storage.file_names import LOG, SWAP, Segment, file_name
from storage.files.files import Files
from storage.log import segment_reader
from storage.log.log_dir import PartitionListing, list_partition


def why_not_whole(files: Files, log_dir: str, topic: str, partition: int) -> Reason | None:
    """Say why records of a log are gone, or would go at a broker's start; None if nothing says so.

    OSError where it cannot be read. What is damaged otherwise is a problem for those that need it.
    """
    path = os.path.join(log_dir, f"{topic}-{partition}")
    log = list_partition(path, topic, partition, files)
    if len(log.segments) <= 1:  # nothing can be missing between, and no index is final
        return None
    try:
        for segment in log.segments[:-1]:
            _require_possible_time(log, segment)
    except CorruptFileError as error:
        text = f"{error}: retention of a broker that starts here would believe it"
        return Reason(ReasonCode.DAMAGED, text)
    if any(name.endswith(LOG + SWAP) for name in log.unfinished):
        return None  # a start puts it in place: what may be missing now is known only then
    with suppress(CorruptFileError):
        first_dirty = missing_offsets.first_dirty_offsets(log_dir, files)
        offset = first_dirty(log, missing_offsets.END_OF_OFFSETS)
        found = missing_offsets.missing_segment(log, offset)
        if found is not None:
            return Reason(
                ReasonCode.DAMAGED, f"{found.path}, byte {found.position}: {found.problem}"
            )
    return None


def _require_possible_time(log: PartitionListing, segment: Segment) -> None:
    """Raise CorruptFileError where a time index ends before the first batch of its segment."""
    if segment.index_bytes is None:  # a start makes the time index anew, too
        return
    last_ms = last_time_entry_ms(log, segment)
    if last_ms < 0 or not segment.log_bytes:
        return
    path = os.path.join(log.path, file_name(segment.base_offset, LOG))
    batches = segment_reader.read_batch_headers(path, 0, segment.log_bytes, log.access)
    with suppress(CorruptFileError):  # of the log: damage of another kind
        first = next((header for _, header in batches), None)
        if first is None or first.max_timestamp <= last_ms:
            return
    has_batch_from(log, segment, last_ms + 1)
