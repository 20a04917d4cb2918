"""Operations that take something off a log: truncation, deletion of segments, of the whole log.

What goes by one rule of retention is deleted before the next one is asked; which segments go says
`storage.log.retention`. Source: Kafka, UnifiedLog.truncateTo, truncateFullyAndStartAt,
deleteOldSegments, maybeIncrementLogStartOffset, renameDir, delete; spec C-18, L-14.10, L-22 to
L-24.
"""

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from storage.file_names import DELETED
from storage.files.files import Files, remove_if_exists
from storage.log.errors import IllegalArgumentError, OffsetOutOfRangeError
from storage.log.log_state import LogState, delete_snapshots, roll
from storage.log.producer_state_manager import rebuild_producers
from storage.log.retention import RetentionLimits, Rule, deletable
from storage.log.segment import LogSegment


def delete_old_segments(state: LogState) -> int:
    """Delete what the topic's retention says; give how many segments were selected."""
    return sum(_delete(state, rule) for rule in Rule)


def _delete(state: LogState, rule: Rule) -> int:
    chosen = deletable(
        list(state.local.segments),
        rule,
        _limits(state),
        state.local.end_offset,
        lambda segment: segment.largest_timestamp,
    )
    if chosen:
        state.local.directory.guarded("deleting segments", lambda: _remove(state, chosen))
    return len(chosen)


def _limits(state: LogState) -> RetentionLimits:
    config, watermarks = state.config, state.watermarks
    has_time = config.is_deleted and config.retention_ms >= 0
    has_size = config.is_deleted and config.retention_bytes >= 0
    return RetentionLimits(
        watermarks.log_start,
        watermarks.high_watermark,
        state.now_ms,
        config.retention_ms if has_time else None,
        config.retention_bytes if has_size else None,
    )


def _remove(state: LogState, chosen: list[LogSegment]) -> None:
    local, removed = state.local, chosen
    if len(local.segments) == len(chosen):
        made = roll(state)
        if chosen[-1].base_offset == made.base_offset:  # it was empty, and is replaced already
            removed = chosen[:-1]
    local.require_open()
    if removed:
        after = local.segments.higher(removed[-1].base_offset)
        assert after is not None, "there is always an active segment"
        increment_log_start(state, after.base_offset)
        local.remove(removed)
        delete_snapshots(local, state.producers, chosen)


def increment_log_start(state: LogState, offset: int) -> bool:
    """Let the log begin later; return whether it does. No file is deleted yet."""
    if offset > state.watermarks.high_watermark:
        raise OffsetOutOfRangeError(
            f"offset {offset} is past the high watermark {state.watermarks.high_watermark}"
        )
    state.local.require_open()
    if offset <= state.watermarks.log_start:
        return False
    state.watermarks.set_log_start(offset)
    state.epochs.truncate_from_start(offset)
    state.producers.on_log_start(offset)
    state.watermarks.update_first_unstable()
    return True


def rename_directory(state: LogState, name: str, goes_on: bool) -> None:
    """Give the directory another name beside its own; files that are open stay so.

    goes_on: the log is used on under that name, and keeps its leader epochs.
    """
    local = state.local
    path = os.path.join(os.path.dirname(local.place.path), name)
    local.files.rename(local.place.path, path)
    local.files.sync_directory(os.path.dirname(path))
    local.place = replace(local.place, path=path)
    local.segments.move_to(path)
    state.producers.move_to(path)
    state.epochs.move_to(path)
    if not goes_on:
        state.epochs.forget()


def delete_directory(state: LogState) -> None:
    """Remove all segments, then the directory with whatever else is in it."""
    local = state.local
    state.epochs.forget()
    segments = list(local.segments)
    local.segments.clear()
    for segment in segments:
        if not segment.is_deleted:
            segment.change_suffix("", DELETED)
    for segment in segments:
        segment.delete()
    local.is_closed = True
    remove_tree(local.files, local.place.path)


def remove_tree(files: Files, path: str) -> None:
    """Remove a directory and all that is in it; one that is gone is no error."""
    if not files.is_directory(path):
        return
    for entry in files.list_directory(path):
        below = os.path.join(path, entry.name)
        if entry.is_dir:
            remove_tree(files, below)
        else:
            remove_if_exists(files, below)
    files.remove_directory(path)


def around(state: LogState, offset: int, is_full: bool = False) -> AbstractContextManager[object]:
    """Return what the owner of the log does about a truncation, as a context."""
    local, segments = state.local, state.local.segments
    if local.is_closed or offset < 0 or not len(segments):
        return nullcontext()
    if is_full:
        return state.truncating(offset, offset)
    if offset >= local.end_offset:
        return nullcontext()
    if offset >= segments.active.base_offset:  # in which no cleaner is ever at work
        return state.truncating(offset, None)
    left = segments.floor(offset)
    return state.truncating(offset, offset if left is None else left.base_offset)


def truncate_to(state: LogState, offset: int) -> bool:
    """End the log at an offset; whether anything was cut off."""
    local = state.local
    if offset < 0:
        raise IllegalArgumentError(f"a log cannot end at offset {offset}")
    if offset >= local.end_offset:
        state.epochs.truncate_from_end(local.end_offset)
        return False
    local.require_open()
    if local.segments.first.base_offset > offset:
        truncate_fully(state, offset, None)
        return True
    gone = local.truncate_to(offset)
    delete_snapshots(local, state.producers, gone)
    state.epochs.truncate_from_end(offset)
    state.watermarks.log_start = min(offset, state.watermarks.log_start)
    rebuild(state, offset)
    local.sync_names()  # snapshots are gone that would say too much, once the log is as long again
    if state.watermarks.high_watermark >= local.end_offset:
        state.watermarks.set_high_watermark(local.end)
    return True


def truncate_fully(state: LogState, offset: int, log_start: int | None) -> None:
    """Delete everything, and go on at an offset."""
    state.local.truncate_fully(offset)
    state.epochs.clear()
    state.producers.truncate_fully(offset)
    state.watermarks.log_start = offset if log_start is None else log_start
    rebuild(state, offset)
    state.local.sync_names()
    state.watermarks.set_high_watermark(state.local.end)


def rebuild(state: LogState, end: int) -> None:
    """Bring the state of producers to an offset."""
    state.local.require_open()
    segments, start = state.local.segments, state.watermarks.log_start
    rebuild_producers(state.producers, segments, start, end, state.now_ms, False)
