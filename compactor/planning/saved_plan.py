"""Save a plan in a file, to be reviewed and then carried out: what it says of each log. Pure.

    {"format": "compactor-plan", "version": 2, "made_by": …, "as_of_ms": …, "log_dirs": […],
     "kafka": {…}, "rules": {…}, "logs": [{…}, …], "retention": [{…}, …]}

Each log is known by its range, the files in it, and the settings that decide what becomes of its
records; `rules` are those of `compactor.api.Rules` with which it was made; `kafka` says, by
log directory, whose answer it is.

A run that carries it out compares it with today's plan. What was appended since is no change: no
log is cleaned further than was reviewed, and newer records wait for the next run. Everything else
that was reviewed has to be as it was.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from cleaner_jobs.messages import LogPlan
from compactor.errors import ConfigError, RefusedError
from compactor.host.printable import counted, iso_time
from compactor.json_types import is_of_type, json_text
from compactor.outcome.round_report import LogKey
from compactor.planning.log_retention import LogRetention
from compactor.planning.round_plan import RoundPlan
from compactor.reason_codes import ReasonCode
from storage.file_names import LOG, Segment, file_name

FORMAT, VERSION = "compactor-plan", 2
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

_Value = TypeVar("_Value")


class SegmentMark(NamedTuple):
    """By what the `.log` of a segment is known again."""

    base_offset: int
    log_bytes: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedLog:
    """What a run would do with a log."""

    log_dir: str
    topic: str
    partition: int
    log_start_offset: int
    first_dirty_offset: int
    first_uncleanable_offset: int
    delete_retention_ms: int
    index_interval_bytes: int
    segment_index_bytes: int
    segment_bytes: int
    segments: tuple[SegmentMark, ...]

    @property
    def key(self) -> LogKey:
        return self.log_dir, self.topic, self.partition

    @classmethod
    def of(cls, log: LogPlan) -> "ReviewedLog":
        """What a plan says of a log."""
        segments = (segment for group in log.groups for segment in group.segments)
        same = {f.name: getattr(log, f.name) for f in fields(cls) if f.name != "segments"}
        return cls(**same, segments=tuple(map(_mark, segments)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedRetention:
    """What retention would delete of a log, as its segments are."""

    log_dir: str
    topic: str
    partition: int
    retention_ms: int | None
    retention_bytes: int | None
    segments: tuple[SegmentMark, ...]

    @property
    def key(self) -> LogKey:
        return self.log_dir, self.topic, self.partition

    @classmethod
    def of(cls, log: LogRetention) -> "ReviewedRetention":
        """What a plan says of retention in a log."""
        return cls(
            log_dir=log.log_dir,
            topic=log.topic,
            partition=log.partition,
            retention_ms=log.limits.retention_ms,
            retention_bytes=log.limits.retention_bytes,
            segments=tuple(map(_mark, log.estimate.segments)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPlan:
    """A plan as it was saved."""

    made_by: str  # version of this project
    saved_at_ms: int
    as_of_ms: int
    is_as_of_given: bool
    log_dirs: tuple[str, ...]
    kafka: dict[str, str]  # the version whose answer it is, by log directory
    rules: dict[str, Any]
    expected: dict[str, Any]  # what was told of time and bytes, to be compared afterwards
    logs: tuple[ReviewedLog, ...]
    retention: tuple[ReviewedRetention, ...]

    @property
    def ceilings(self) -> dict[LogKey, int]:
        """How far each of its logs may be cleaned, exclusive."""
        return {log.key: log.first_uncleanable_offset for log in self.logs}


def reviewed_of(
    plan: RoundPlan,
) -> tuple[tuple[ReviewedLog, ...], tuple[ReviewedRetention, ...]]:
    """What is saved of a plan's logs."""
    retention = tuple(map(ReviewedRetention.of, plan.retention))
    return tuple(map(ReviewedLog.of, plan.logs)), retention


def document(saved: SavedPlan) -> bytes:
    """The bytes of the file."""
    head = {"format": FORMAT, "version": VERSION}
    return (json.dumps(head | asdict(saved), indent=1) + "\n").encode("ascii")


def parse(data: bytes, path: str) -> SavedPlan:
    """Raise ConfigError, in words, where it is no plan of this version."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"is no plan that plan --save wrote: {error}", value=path) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ConfigError("is no plan that plan --save wrote", value=path)
    if document.get("version") != VERSION:
        maker = document.get("made_by")
        by = maker if isinstance(maker, str) else json_text(maker)
        raise ConfigError(
            f"is a plan of version {json_text(document.get('version'))}, made by {by}; this "
            f"compactor takes version {VERSION}: plan again with it",
            value=path,
        )
    try:
        return _built(SavedPlan, document, log_dirs=_strings, logs=_logs, retention=_retention)
    except KeyError as error:
        problem = f"says nothing of {error}: it is damaged, or an older version saved it"
        raise ConfigError(f"{problem}: plan again", value=path) from None
    except (TypeError, ValueError) as error:
        raise ConfigError(f"is a damaged plan ({error}): plan again", value=path) from None


def drop_unreviewed_retention(saved: SavedPlan, plan: RoundPlan) -> RoundPlan:
    """Without retention in logs of which the saved plan has none."""
    reviewed = {log.key for log in saved.retention}
    kept = (log for log in plan.retention if log.key in reviewed)
    return replace(plan, retention=tuple(kept))


def require_unchanged_since_review(saved: SavedPlan, plan: RoundPlan, path: str) -> None:
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


def _built(kind: Callable[..., _Value], document: Any, **parts: Callable[[Any], Any]) -> _Value:
    """A value of the fields that a file has, each of its type."""
    values = {}
    for field in fields(kind):  # type: ignore[arg-type]
        value = document[field.name]
        if field.name in parts:
            value = parts[field.name](value)
        elif not is_of_type(value, field.type):
            raise TypeError(field.name)
        values[field.name] = value
    return kind(**values)


def _strings(values: Any) -> tuple[str, ...]:
    if not is_of_type(values, list[str]) or not values:
        raise TypeError("log_dirs")
    return tuple(values)


def _logs(values: Any) -> tuple[ReviewedLog, ...]:
    return tuple(_built(ReviewedLog, value, segments=_marks) for value in _objects(values))


def _retention(values: Any) -> tuple[ReviewedRetention, ...]:
    return tuple(_built(ReviewedRetention, value, segments=_marks) for value in _objects(values))


def _objects(values: Any) -> list[dict[str, Any]]:
    if not is_of_type(values, list[dict[str, Any]]):
        raise TypeError("logs or retention")
    rows: list[dict[str, Any]] = values
    return rows


def _marks(values: Any) -> tuple[SegmentMark, ...]:
    if not is_of_type(values, list[tuple[int, int, int, int]]):
        raise TypeError("segments")
    marks = tuple(SegmentMark(*value) for value in values)
    offsets = [-1, *(mark.base_offset for mark in marks)]
    if any(after <= before for before, after in pairwise(offsets)):  # none twice, all in order
        raise ValueError("segments")
    return marks


def _mark(segment: Segment) -> SegmentMark:
    return SegmentMark(
        segment.base_offset, segment.log_bytes, segment.log_mtime_ns, segment.log_inode
    )


def _changes(saved: SavedPlan, plan: RoundPlan) -> Iterator[tuple[str, str]]:
    """Name and change, of each log that changed."""
    logs, retention = reviewed_of(plan)
    now = {log.key: log for log in logs}
    left = {report.key: report for report in plan.not_cleaned}
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
