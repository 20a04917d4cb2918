"""Segments of a log in use that are deleted, by its retention, and their producer snapshots.

What goes by one rule of retention is deleted before the next one is asked.

Which segments go says `storage.log.retention`. Source: Kafka, UnifiedLog; spec C-18, L-14.10, L-23.
"""

from collections.abc import Iterable

from storage.log.errors import OffsetOutOfRangeError
from storage.log.local_log import LocalLog
from storage.log.moves import remove_if_there
from storage.log.parts import LogParts, roll
from storage.log.producer_state_manager import ProducerStateManager
from storage.log.retention import RetentionLimits, Rule, deletable
from storage.log.segment import LogSegment


def delete_old_segments(parts: LogParts) -> int:
    """Delete what the topic's retention says; give how many segments were selected."""
    return sum(_delete(parts, rule) for rule in Rule)


def _delete(parts: LogParts, rule: Rule) -> int:
    chosen = deletable(
        list(parts.local.segments),
        rule,
        _limits(parts),
        parts.local.end_offset,
        lambda segment: segment.largest_timestamp,
    )
    if chosen:
        parts.local.directory.guarded("deleting segments", lambda: _remove(parts, chosen))
    return len(chosen)


def _limits(parts: LogParts) -> RetentionLimits:
    config, marks = parts.config, parts.marks
    has_time = config.is_deleted and config.retention_ms >= 0
    has_size = config.is_deleted and config.retention_bytes >= 0
    return RetentionLimits(
        marks.log_start,
        marks.high_watermark,
        parts.now_ms,
        config.retention_ms if has_time else None,
        config.retention_bytes if has_size else None,
    )


def _remove(parts: LogParts, chosen: list[LogSegment]) -> None:
    local, removed = parts.local, chosen
    if len(local.segments) == len(chosen):
        made = roll(parts)
        if chosen[-1].base_offset == made.base_offset:  # it was empty, and is replaced already
            removed = chosen[:-1]
    local.require_open()
    if removed:
        after = local.segments.higher(removed[-1].base_offset)
        assert after is not None, "there is always an active segment"
        increment_log_start(parts, after.base_offset)
        local.remove(removed)
        delete_snapshots(local, parts.producers, chosen)


def increment_log_start(parts: LogParts, offset: int) -> bool:
    """Let the log begin later; whether it does. No file is deleted here."""
    if offset > parts.marks.high_watermark:
        raise OffsetOutOfRangeError(
            f"offset {offset} is past the high watermark {parts.marks.high_watermark}"
        )
    parts.local.require_open()
    if offset <= parts.marks.log_start:
        return False
    parts.marks.set_log_start(offset)
    parts.epochs.truncate_from_start(offset)
    parts.producers.on_log_start(offset)
    parts.marks.update_first_unstable()
    return True


def delete_snapshots(
    local: LocalLog, producers: ProducerStateManager, segments: Iterable[LogSegment]
) -> None:
    """Rename the snapshots at the bases of segments now, and remove them with the segments."""
    found = [producers.mark_snapshot_deleted(segment.base_offset) for segment in segments]
    paths = [path for path in found if path is not None]

    def delete() -> None:
        for path in paths:
            remove_if_there(local.files, path)

    if paths:
        local.schedule_deletion("deleting producer snapshots", delete)
