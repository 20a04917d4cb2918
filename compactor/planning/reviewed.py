"""Holds today's plan against one that was saved: the same logs, ranges and settings, or not. Pure.

What was appended since is no change: no log is cleaned further than was reviewed, and what is newer
waits for the next run. Everything else that was reviewed has to be as it was.
"""

from collections.abc import Iterator
from dataclasses import replace

from compactor.errors import RefusedError
from compactor.host.printable import counted, iso_time
from compactor.planning.round_plan import RoundPlan
from compactor.planning.saved_plan import (
    LogKey,
    ReviewedLog,
    ReviewedRetention,
    SavedPlan,
    SegmentMark,
    reviewed_of,
)
from compactor.reason_codes import ReasonCode
from storage.file_names import LOG, file_name

SHOWN_LOGS = 3
_SETTINGS = {
    "delete_retention_ms": "delete.retention.ms",
    "index_interval_bytes": "index.interval.bytes",
    "segment_index_bytes": "segment.index.bytes",
    "segment_bytes": "segment.bytes",
    "retention_ms": "retention.ms",
    "retention_bytes": "retention.bytes",
}
_OFFSETS = {
    "log_start_offset": "the log starts at",
    "first_dirty_offset": "it is clean up to",
    "first_uncleanable_offset": "it can be cleaned up to",
}


def only_reviewed(saved: SavedPlan, plan: RoundPlan) -> RoundPlan:
    """Without retention in logs of which the saved plan has none."""
    reviewed = {log.key for log in saved.retention}
    kept = (r for r in plan.retention if (r.log_dir, r.topic, r.partition) in reviewed)
    return replace(plan, retention=tuple(kept))


def require_as_reviewed(saved: SavedPlan, plan: RoundPlan, path: str) -> None:
    """Raise RefusedError where a log is not as it was when the plan was saved."""
    changes = list(_changes(saved, plan))
    if not changes:
        return
    names = {name for name, _ in changes}
    shown = "; ".join(f"{name}: {change}" for name, change in changes[:SHOWN_LOGS])
    more = f"; and {len(changes) - SHOWN_LOGS:,} more" if changes[SHOWN_LOGS:] else ""
    raise RefusedError(
        f"{path}: {counted(len(names), 'log')} of the plan changed since it was saved, "
        f"{iso_time(saved.saved_at_ms)}: {shown}{more}. Plan again, with --save, and review it",
        ReasonCode.CHANGED_MEANWHILE,
    )


def _changes(saved: SavedPlan, plan: RoundPlan) -> Iterator[tuple[str, str]]:
    """Name and change, of each log that changed."""
    logs, retention = reviewed_of(plan)
    now = {log.key: log for log in logs}
    left = {(r.log_dir, r.topic, r.partition): r for r in plan.not_cleaned}
    for log in saved.logs:
        if log.key in now:
            change = _change(log, now[log.key])
        elif log.key not in left:
            change = "is gone"
        else:
            change = f"is not to be cleaned by now: {left[log.key].reason}"
        if change is not None:
            yield _name(log.key), change
    retained = {log.key: log for log in retention}
    for due in saved.retention:
        change = _change(due, retained[due.key]) if due.key in retained else None
        if due.key not in retained and due.segments:
            change = "retention has nothing to delete by now"
        if change is not None:
            yield _name(due.key), change


def _name(key: LogKey) -> str:
    return f"{key[1]}-{key[2]}"


def _change(
    before: ReviewedLog | ReviewedRetention, now: ReviewedLog | ReviewedRetention
) -> str | None:
    """The first difference, in words."""
    for names, words in ((_SETTINGS, "{} is {}, was {}"), (_OFFSETS, "{} offset {}, was {}")):
        for name, text in names.items():
            old, new = getattr(before, name, None), getattr(now, name, None)
            if old != new:
                return words.format(text, new, old)
    return _change_of_segments(before.segments, now.segments)


def _change_of_segments(
    before: tuple[SegmentMark, ...], now: tuple[SegmentMark, ...]
) -> str | None:
    if before == now:
        return None
    old, new = ({mark.base_offset: mark for mark in marks} for marks in (before, now))
    base_offset = min(base for base in old.keys() | new.keys() if old.get(base) != new.get(base))
    name = file_name(base_offset, LOG)
    if base_offset not in new:
        return f"{name} is not among its segments any more"
    if base_offset not in old:
        return f"{name} is among its segments by now"
    if old[base_offset].log_bytes != new[base_offset].log_bytes:
        return f"{name} has {new[base_offset].log_bytes} bytes, had {old[base_offset].log_bytes}"
    return f"{name} was written or replaced"
