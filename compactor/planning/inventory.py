"""Sum up how large logs are, how much is dirty, and what keeps it from being cleaned. Pure.

All logs of a plan count, those passed over, too; rolled up by topic, and put in an order.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from compactor.outcome.round_report import CleaningReport, LogKey, LogReport, LogSections, LogStatus
from compactor.planning.outcomes import PartitionOutcome, Standing
from compactor.planning.reasons import tightest_bound
from compactor.planning.selection import BoundName, inactive_from
from compactor.settings.rules import Order


@dataclass(frozen=True, slots=True)
class LogSize:
    """One log. Bytes are those of `.log` files."""

    JSON_NAMES: ClassVar = (
        *("standing", "total_bytes", "dirty_bytes", "gain_bytes", "held_bytes", "held_by"),
        "dirty_since_ms",
    )

    log_dir: str
    topic: str
    partition: int
    standing: Standing
    total_bytes: int
    dirty_bytes: int | None = None  # of inactive segments; None: not judged
    clean_bytes: int = 0
    cleanable_bytes: int = 0  # of the dirty ones, those before every bound
    held_by: BoundName | None = None  # what holds the other dirty ones
    dirty_since_ms: int | None = None  # when its first dirty segment was last written

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def key(self) -> LogKey:
        return self.log_dir, self.topic, self.partition

    @property
    def held_bytes(self) -> int:
        """Dirty bytes that a bound keeps from being cleaned."""
        return 0 if self.dirty_bytes is None else self.dirty_bytes - self.cleanable_bytes

    @property
    def gain_bytes(self) -> int:
        """Dirty bytes that a run would clean, of which it frees what is superseded."""
        return self.cleanable_bytes if self.standing is Standing.TO_CLEAN else 0


@dataclass(frozen=True, slots=True)
class Extent:
    """The sizes of some logs together."""

    JSON_NAMES: ClassVar = (
        *("logs", "to_clean", "total_bytes", "dirty_bytes", "gain_bytes", "held_bytes", "held_by"),
    )

    logs: int = 0
    to_clean: int = 0  # logs
    total_bytes: int = 0
    dirty_bytes: int = 0
    clean_bytes: int = 0
    cleanable_bytes: int = 0
    gain_bytes: int = 0
    held_bytes: int = 0
    held_by: BoundName | None = None  # what holds most of these
    dirty_since_ms: int | None = None


def size_of(outcome: PartitionOutcome) -> LogSize:
    """How large a log is, as it was planned."""
    partition, judgement = outcome.partition, outcome.judgement
    standing = Standing.TO_CLEAN if outcome.refusal is None else outcome.refusal.standing
    total_bytes = sum([segment.log_bytes for segment in partition.segments])
    if judgement is None:
        return LogSize(
            log_dir=outcome.log_dir,
            topic=partition.topic,
            partition=partition.partition,
            standing=standing,
            total_bytes=total_bytes,
        )
    dirty = inactive_from(partition.segments, judgement.first_dirty.offset)
    dirty_bytes = sum([segment.log_bytes for segment in dirty])
    cleanable = judgement.cleanable
    is_held = dirty_bytes > cleanable.cleanable_bytes
    return LogSize(
        log_dir=outcome.log_dir,
        topic=partition.topic,
        partition=partition.partition,
        standing=standing,
        total_bytes=total_bytes,
        dirty_bytes=dirty_bytes,
        clean_bytes=cleanable.clean_bytes,
        cleanable_bytes=cleanable.cleanable_bytes,
        held_by=tightest_bound(judgement).name if is_held else None,
        dirty_since_ms=dirty[0].log_mtime_ns // 1_000_000 if dirty else None,
    )


def with_sections(report: CleaningReport, sizes: Iterable[LogSize]) -> CleaningReport:
    """The report with how large each of its logs was when the round was planned."""
    found = {
        size.key: LogSections(
            size.total_bytes, size.clean_bytes, size.dirty_bytes or 0, size.held_bytes
        )
        for size in sizes
    }
    logs = (replace(log, sections=found.get(log.key)) for log in report.logs)
    return replace(report, logs=tuple(logs))


def unlisted_size(report: LogReport) -> LogSize:
    """Of a log whose directory could not be listed, or that is none for a cleaner."""
    is_set_aside = report.status is LogStatus.SET_ASIDE
    standing = Standing.SET_ASIDE if is_set_aside else Standing.METADATA_LOG
    return LogSize(
        log_dir=report.log_dir,
        topic=report.topic,
        partition=report.partition,
        standing=standing,
        total_bytes=0,
    )


def extent_of(sizes: Iterable[LogSize]) -> Extent:
    """What logs come to."""
    sizes = list(sizes)
    held: dict[BoundName, int] = {}
    for size in sizes:
        if size.held_by is not None:
            held[size.held_by] = held.get(size.held_by, 0) + size.held_bytes
    since = [size.dirty_since_ms for size in sizes if size.dirty_since_ms is not None]
    return Extent(
        logs=len(sizes),
        to_clean=sum(size.standing is Standing.TO_CLEAN for size in sizes),
        total_bytes=sum(size.total_bytes for size in sizes),
        dirty_bytes=sum(size.dirty_bytes or 0 for size in sizes),
        clean_bytes=sum(size.clean_bytes for size in sizes),
        cleanable_bytes=sum(size.cleanable_bytes for size in sizes),
        gain_bytes=sum(size.gain_bytes for size in sizes),
        held_bytes=sum(held.values()),
        held_by=max(held, key=lambda name: held[name], default=None),
        dirty_since_ms=min(since, default=None),
    )


def by_topic(sizes: Iterable[LogSize]) -> dict[str, Extent]:
    """What the logs of each topic come to."""
    grouped: dict[str, list[LogSize]] = {}
    for size in sizes:
        grouped.setdefault(size.topic, []).append(size)
    return {topic: extent_of(logs) for topic, logs in grouped.items()}


def by_standing(sizes: Iterable[LogSize]) -> dict[Standing, Extent]:
    """What the logs of each standing come to, in the order of standings."""
    sizes = list(sizes)
    found = {s: extent_of(size for size in sizes if size.standing is s) for s in Standing}
    return {standing: extent for standing, extent in found.items() if extent.logs}


def sort_key_of(order: Order) -> Callable[[LogSize | Extent], tuple[float, ...]]:
    """The key to sort by; of equals, those with more to clean come first, then the larger ones."""

    def ratio(size: LogSize | Extent) -> float:
        total_bytes = size.clean_bytes + size.cleanable_bytes
        return size.cleanable_bytes / total_bytes if total_bytes else 0.0

    def key(size: LogSize | Extent) -> tuple[float, ...]:
        rest = -size.gain_bytes, -size.cleanable_bytes, -size.total_bytes
        match order:
            case Order.GAIN:
                return rest
            case Order.FILTHIEST:
                return -ratio(size), *rest
            case Order.SMALLEST:
                return size.total_bytes, *rest
            case Order.OLDEST:
                since_ms = size.dirty_since_ms
                return float("inf") if since_ms is None else float(since_ms), *rest

    return key
