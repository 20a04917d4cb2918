"""A segment with offsets too far apart for its indexes, cut into several while a log is loaded.

1. The files of the new segments (`storage.log.splitting`) are written, with `.cleaned` at their
   end, and synced.
2. They take its place (`segment_swap`). A start that comes before the last of them has `.swap` at
   its end finds the old segment as it was, and splits it again.
3. The old files are deleted where the segment was loaded already; else a new one of the same base
   offset takes their names.

Source: Kafka, LocalLog.splitOverflowedSegment, LogLoader.retryOnOffsetOverflow; spec L-8.4, L-25.3,
C-16.3 to C-16.6.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from storage.file_names import CLEANED, LOG, SEGMENT_SUFFIXES, file_name
from storage.formats.txn_index import AbortedTxn
from storage.log.batches import Batch
from storage.log.errors import (
    IllegalArgumentError,
    IllegalStateError,
    NoSuchElementError,
)
from storage.log.local_log import LocalLog
from storage.log.moves import remove_if_there
from storage.log.segment import LogSegment
from storage.log.segment_swap import put_in_place

if TYPE_CHECKING:
    from storage.log.splitting import IndexLimits, NewSegment


def split(local: LocalLog, segment: LogSegment, aborted: Sequence[AbortedTxn]) -> list[LogSegment]:
    """Put several segments in the place of one; give it where no new one has its base offset.

    aborted: the aborted transactions whose markers it holds. Raise IllegalArgumentError where its
    last offset does fit, as where one in the middle is wrong, and where a new index would be full.
    """
    end = segment.next_offset()
    if end <= segment.base_offset or segment.holds(end - 1):
        raise IllegalArgumentError(
            f"segment {segment.base_offset} ends at offset {end}: there is nothing to split"
        )
    from storage.log.splitting import IndexLimits  # loads kernels

    limits = IndexLimits(local.config.index_interval_bytes, local.config.segment_index_bytes)
    planned = _planned(segment, aborted, limits)
    stems = {base: _stem(local, base) for base in planned}
    written: dict[int, dict[str, str]] = {}
    try:
        for base, stem in stems.items():
            contents = planned[base].files(local.files, segment.path(LOG), limits)
            written[base] = {kind: stem + kind + CLEANED for kind in contents}
            _write(local, stem, contents)
            local.files.set_modified(stem + LOG + CLEANED, segment.last_modified_ms)
    except BaseException:
        for stem in stems.values():
            _remove(local, stem)
        raise
    is_loaded = any(each is segment for each in local.segments)
    for put in put_in_place(local, [segment] if is_loaded else [], written):
        put.bytes_since_entry = planned[put.base_offset].bytes_since_entry
    if is_loaded:
        return [] if segment.base_offset in written else [segment]
    # Kafka's own way: an old one that was not loaded is replaced by the one of its base offset
    # alone. Without such a one it stays, behind those that its batches are in.
    segment.close_handles()
    return []


def _planned(
    segment: LogSegment, aborted: Sequence[AbortedTxn], limits: "IndexLimits"
) -> "dict[int, NewSegment]":
    """Give the new segments by rising base offset."""
    from storage.log.splitting import SplitBatch, plan_split

    batches = (
        SplitBatch(b.position, b.size_bytes, b.base_offset, b.last_offset, b.max_timestamp)
        for b in _whole_batches(segment)
    )
    planned = plan_split(batches, aborted, limits.interval_bytes)
    for new in planned:
        if new.indexes.problem:
            raise IllegalStateError(f"no batch fits a segment of base {new.base_offset}")
        if problem := new.why_refused(limits):
            raise IllegalArgumentError(f"segment {segment.base_offset} cannot be split: {problem}")
    by_base = {new.base_offset: new for new in sorted(planned, key=lambda new: new.base_offset)}
    if len(by_base) < len(planned):
        raise IllegalStateError(f"two parts of {segment.base_offset} begin at the same offset")
    return by_base


def _stem(local: LocalLog, base_offset: int) -> str:
    return os.path.join(local.place.path, file_name(base_offset, ""))


def _whole_batches(segment: LogSegment) -> Iterator[Batch]:
    position = 0
    for batch in segment.log.batches():
        yield batch
        position = batch.position + batch.size_bytes
    if position < segment.size_bytes:
        raise NoSuchElementError(f"no batch at byte {position} of {segment.base_offset}")


def _write(local: LocalLog, stem: str, contents: Mapping[str, Iterator[bytes]]) -> None:
    _remove(local, stem)  # what an earlier attempt has left
    for kind, pieces in contents.items():
        file, position = local.files.open_to_change(stem + kind + CLEANED, create=True), 0
        try:
            for data in pieces:
                file.write(position, data)
                position += len(data)
            file.sync()
        finally:
            file.close()


def _remove(local: LocalLog, stem: str) -> None:
    for kind in SEGMENT_SUFFIXES:
        remove_if_there(local.files, stem + kind + CLEANED)
