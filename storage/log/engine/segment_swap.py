"""Cleaned segments, put in the place of those that they were made of, while the log is in use.

For each group of old segments and the new ones that replace it:

1. The files of the new ones come into the log's directory with `.cleaned` at their end. A start
   after a crash removes them.
2. By falling base offset they get `.swap`. From the last of these renames on a start finishes the
   swap; before it, it goes back to the old segments.
3. The old files get `.deleted`, and are removed after file.delete.delay.ms. Those behind the end of
   the new ones, which a start does not remove, go one after the other from the front, so that no
   tombstone goes before what it hides.
4. The new ones get their own names, each `.log` first: only then nothing else can be removed that
   belongs to it.
5. Producer snapshots at base offsets that are no more are deleted likewise.

The directory is synced between all of these, as in the swap of a round (`compactor.finalizer`, with
the reasons); Kafka does it at the end alone, and counts on a file system that keeps the order.

Source: Kafka, LocalLog.replaceSegments, UnifiedLog.replaceSegments; spec C-15.1.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

from storage.file_names import CLEANED, SEGMENT_SUFFIXES, SWAP, file_name
from storage.formats import producer_snapshot
from storage.log.engine.local_log import LocalLog
from storage.log.engine.parts import LogParts
from storage.log.engine.segment import LogSegment
from storage.log.engine.snapshot_deletion import delete_snapshots


class CleanedGroup(NamedTuple):
    """Segments of a log, by base offset, and those that take their place."""

    directory: str  # which has the files of the new ones, synced, on the log's file system
    old_bases: tuple[int, ...]  # rising
    new_bases: tuple[int, ...]  # rising; the first is that of the old ones


class LogView(NamedTuple):
    """A log at one moment, as far as a cleaning has to know it."""

    segments: tuple[LogSegment, ...]  # rising; the last one is active
    active_bytes: int  # of its `.log`, up to log_end
    log_start: int
    log_end: int
    last_stable: int  # nothing at or past it is decided
    high_watermark: int
    producers: bytes  # as a snapshot at log_end


def view_of(parts: LogParts) -> LogView:
    segments, end = tuple(parts.local.segments), parts.local.end
    active = segments[-1]  # behind the end may be what an append that failed has left
    is_end_known = end.segment == active.base_offset
    return LogView(
        segments=segments,
        active_bytes=end.position if is_end_known else active.size_bytes,
        log_start=parts.marks.log_start,
        log_end=parts.local.end_offset,
        last_stable=parts.marks.last_stable,
        high_watermark=parts.marks.high_watermark,
        producers=producer_snapshot.encode(each.entry() for each in parts.producers.producers),
    )


def swap_in(parts: LogParts, group: CleanedGroup) -> None:
    """Replace a group. The caller has made sure that the old ones are what was cleaned."""
    local = parts.local
    local.require_open()
    old = [segment for segment in local.segments if segment.base_offset in group.old_bases]
    new = [_brought(parts, group.directory, base) for base in group.new_bases]
    put_in_place(local, old, new)
    gone = set(group.old_bases) - set(group.new_bases)
    delete_snapshots(local, parts.producers, [s for s in old if s.base_offset in gone])


def put_in_place(local: LocalLog, old: Sequence[LogSegment], new: Sequence[LogSegment]) -> None:
    """Steps 2 to 4. old: of the log, rising; new: rising, whose files end in `.cleaned`."""
    lowest, *others = new
    local.sync_names()
    for segment in reversed(others):
        segment.change_suffix(CLEANED, SWAP)
    if others:
        local.sync_names()
    lowest.change_suffix(CLEANED, SWAP)
    local.sync_names()
    end = new[-1].next_offset()
    local.segments.exchange([segment.base_offset for segment in old], new)
    local.delete_files([segment for segment in old if segment.base_offset < end])
    for segment in old:
        if segment.base_offset >= end:
            local.delete_files([segment])
    local.sync_names()
    for segment in new:
        segment.rename_log(SWAP, "")
        local.sync_names()
        segment.rename_indexes()
    local.sync_names()


def _brought(parts: LogParts, directory: str, base: int) -> LogSegment:
    local = parts.local
    for kind in SEGMENT_SUFFIXES:
        name = file_name(base, kind)
        source = os.path.join(directory, name)
        if local.files.exists(source):
            local.files.rename(source, os.path.join(local.place.path, name + CLEANED))
    return open_cleaned(local, base)


def open_cleaned(local: LocalLog, base: int) -> LogSegment:
    """Open a finished segment whose files end in `.cleaned`."""
    segment = LogSegment(local.place, base, local.config, suffix=CLEANED)
    segment.open_indexes()  # as those of Kafka's cleaner are, which has just written them
    segment.note_time(*segment.time_index.last)
    return segment


def is_unchanged(parts: LogParts, old: Sequence[LogSegment]) -> bool:
    """Whether a log still has the very segments that were cleaned."""
    there = {segment.base_offset: segment for segment in parts.local.segments}
    return all(there.get(segment.base_offset) is segment for segment in old)
