"""Cleaned segments, put in the place of those that they were made of, while the log is in use.

The steps are those of `storage.log.swap`. Until they get `.cleaned` at their end the files of the
new segments may be in another directory. What is replaced gets `.deleted` at its end in step 3, for
those who still read it, and is removed after file.delete.delay.ms. Behind the steps the producer
snapshots at base offsets that are no more are deleted in the same way.

A start after a crash finishes the swap, or goes back to the old segments (`compactor.finalizer` has
a table). Kafka syncs the directory at the end alone, and counts on a file system that keeps the
order.

Source: Kafka, LocalLog.replaceSegments, UnifiedLog.replaceSegments; spec C-15.1.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from storage.file_names import CLEANED, LOG, SEGMENT_SUFFIXES, TXN_INDEX, file_name
from storage.files.files import ChangingFile
from storage.formats import producer_snapshot
from storage.log.local_log import LocalLog
from storage.log.log_config import LogConfig
from storage.log.log_state import LogState, delete_snapshots
from storage.log.segment import LogPlace, LogSegment
from storage.log.swap import apply_steps, plan_swap


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


def view_of(state: LogState) -> LogView:
    segments, end = tuple(state.local.segments), state.local.end
    active = segments[-1]  # behind the end may be what an append that failed has left
    is_end_known = end.segment == active.base_offset
    return LogView(
        segments=segments,
        active_bytes=end.position if is_end_known else active.size_bytes,
        log_start=state.watermarks.log_start,
        log_end=state.local.end_offset,
        last_stable=state.watermarks.last_stable,
        high_watermark=state.watermarks.high_watermark,
        producers=producer_snapshot.encode(each.entry() for each in state.producers.producers),
    )


def swap_in(state: LogState, group: CleanedGroup) -> None:
    """Replace a group. The caller has made sure that the old ones are what was cleaned."""
    local = state.local
    local.require_open()
    old = [segment for segment in local.segments if segment.base_offset in group.old_bases]
    put_in_place(local, old, {base: _found(state, group, base) for base in group.new_bases})
    gone = set(group.old_bases) - set(group.new_bases)
    delete_snapshots(local, state.producers, [s for s in old if s.base_offset in gone])


def _found(state: LogState, group: CleanedGroup, base: int) -> dict[str, str]:
    paths = {
        kind: os.path.join(group.directory, file_name(base, kind)) for kind in SEGMENT_SUFFIXES
    }
    return {kind: path for kind, path in paths.items() if state.local.files.exists(path)}


def put_in_place(
    local: LocalLog, old: Sequence[LogSegment], new: Mapping[int, Mapping[str, str]]
) -> list[LogSegment]:
    """Replace segments by others, and return these.

    Args:
        local: The log.
        old: Segments of the log, rising.
        new: The paths that the finished files of the others have now, by rising base offset and
            by suffix.
    """
    path, files = local.place.path, _FilesInUse(local)
    files.follow(old)
    plan = plan_swap(
        {segment.base_offset: _kinds(local, segment) for segment in old},
        new,
        _end_offset(local, max(new), new[max(new)][LOG]),
        keeps_sources=True,
    )
    apply_steps(files, path, plan.stage)
    made = [_opened(local, base) for base in new]
    files.follow(made)
    apply_steps(files, path, plan.complete)
    local.segments.exchange([segment.base_offset for segment in old], made)
    apply_steps(files, path, [*plan.replace, *plan.name])
    if old:
        local.delete_files(old)
    return made


def _kinds(local: LocalLog, segment: LogSegment) -> list[str]:
    """The files that a segment has, or may get by a read."""
    has_txns = local.files.exists(segment.path(TXN_INDEX))
    return [kind for kind in SEGMENT_SUFFIXES if kind != TXN_INDEX or has_txns]


def _end_offset(local: LocalLog, base: int, log_path: str) -> int:
    directory, name = os.path.split(log_path)
    place = replace(local.place, path=directory)
    return end_of(place, base, local.config, name.removeprefix(file_name(base, LOG)))


def end_of(place: LogPlace, base: int, config: LogConfig, suffix: str) -> int:
    """Return where a start takes a segment to end whose files have a suffix."""
    segment = LogSegment(place, base, config, suffix=suffix)
    try:
        return segment.next_offset()
    finally:
        segment.close_handles()


def _opened(local: LocalLog, base: int) -> LogSegment:
    segment = LogSegment(local.place, base, local.config, suffix=CLEANED)
    segment.open_indexes()  # as those of Kafka's cleaner are, which has just written them
    segment.note_time(*segment.time_index.last)
    return segment


class _FilesInUse:
    """Files of a log in use: a segment that is open follows the renames of its own."""

    def __init__(self, local: LocalLog) -> None:
        self._local = local
        self._followed: dict[str, tuple[LogSegment, str]] = {}  # by path; with the suffix

    def follow(self, segments: Iterable[LogSegment]) -> None:
        self._followed |= {
            segment.path(kind): (segment, kind) for segment in segments for kind in SEGMENT_SUFFIXES
        }

    def rename(self, source: str, target: str) -> None:
        followed = self._followed.pop(source, None)
        if followed is None:
            self._local.files.rename(source, target)
            return
        segment, kind = followed
        segment.rename_file(kind, target)
        self._followed[target] = followed

    def open_to_change(self, path: str, create: bool = False) -> ChangingFile:
        return self._local.files.open_to_change(path, create)

    def remove(self, path: str) -> None:
        self._local.files.remove(path)

    def sync_directory(self, _: str) -> None:
        self._local.sync_names()


def is_unchanged(state: LogState, old: Sequence[LogSegment]) -> bool:
    """Whether a log still has the very segments that were cleaned."""
    there = {segment.base_offset: segment for segment in state.local.segments}
    return all(there.get(segment.base_offset) is segment for segment in old)
