"""The rows of a plan's list: a topic each, or a log each where there are few."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from cleaner_jobs.messages import LogPlan
from compactor.host.printable import printable, size_text
from compactor.planning.expected import Estimates, gain_of, gain_text
from compactor.planning.inventory import (
    Extent,
    LogSize,
    by_topic,
    extent_of,
    sort_key,
)
from compactor.planning.order import Order
from compactor.planning.outcomes import Standing
from compactor.planning.round_plan import LogFacts, RoundPlan
from compactor.planning.sample_estimate import Estimate
from compactor.planning.selection import BoundName
from compactor.views.fitting_table import Column, table_lines

_ORDERS = {
    Order.GAIN: "most to clean first",
    Order.FILTHIEST: "highest dirty ratio first",
    Order.SMALLEST: "smallest first",
    Order.OLDEST: "longest dirty first",
}
HELD_BY = {
    BoundName.HIGH_WATERMARK: "high watermark",
    BoundName.OPEN_TRANSACTION: "transaction",
    BoundName.ACTIVE_SEGMENT: "active segment",
    BoundName.MIN_COMPACTION_LAG: "compaction lag",
    BoundName.SAVED_PLAN: "saved plan",
}
_TOPIC_COLUMNS = (
    Column("logs", 7),
    Column("to clean", 6),
    Column("size", 4),
    Column("dirty", 1),
    Column("ratio", 5),
    Column("dirty to clean", 0),
    Column("estimated gain", 0),
    Column("held back", 2),
    Column("by", 3, is_text=True),
)
_LOG_COLUMNS = (
    Column("size", 4),
    Column("dirty", 1),
    Column("ratio", 5),
    Column("would go", 1),
    Column("estimated gain", 1),
    Column("to rewrite", 6),
    Column("segments", 7),
    Column("offsets", 8),
    Column("held back", 2),
    Column("by", 3, is_text=True),
    Column("", 0, is_text=True),
    Column("log directory", 9, is_text=True),
)


def topics_lines(
    plan: RoundPlan, width: int, order: Order, top: int | None, estimates: Estimates | None = None
) -> list[Text]:
    """A line a topic, the first few of them, and what the others come to."""
    key = sort_key(order)
    logs: dict[str, list[LogPlan]] = {}
    for log in plan.logs:
        logs.setdefault(log.topic, []).append(log)
    topics = sorted(by_topic(plan.inventory).items(), key=lambda item: (*key(item[1]), item[0]))
    shown = topics[:top]
    rows = [
        _topic_row(printable(topic), extent, estimated_gain(logs.get(topic, ()), estimates))
        for topic, extent in shown
    ]
    if len(topics) > len(shown):
        names = {topic for topic, _ in topics[len(shown) :]}
        rest = extent_of(size for size in plan.inventory if size.topic in names)
        gain = estimated_gain([log for log in plan.logs if log.topic in names], estimates)
        rows.append(_topic_row(f"… and {len(names):,} more", rest, gain))
    return table_lines(f"topic, {_ORDERS[order]}", _TOPIC_COLUMNS, rows, width)


def _topic_row(name: str, extent: Extent, gain: str) -> list[str]:
    judged_bytes = extent.clean_bytes + extent.cleanable_bytes
    return [
        name,
        f"{extent.logs:,}",
        f"{extent.logs_to_clean:,}",
        size_text(extent.total_bytes),
        size_text(extent.dirty_bytes) if extent.dirty_bytes else "",
        f"{extent.cleanable_bytes / judged_bytes:.1%}" if judged_bytes else "",
        size_text(extent.gain_bytes) if extent.gain_bytes else "",
        gain,
        *held(extent),
    ]


def logs_lines(
    plan: RoundPlan, width: int, order: Order, estimates: Estimates | None = None
) -> list[Text]:
    """A line a log, of all there are."""
    key = sort_key(order)
    sizes = sorted(plan.inventory, key=lambda size: (*key(size), size.topic, size.partition))
    facts = {_key(facts): facts for facts in plan.facts}
    columns = _LOG_COLUMNS if len(plan.log_dirs) > 1 else _LOG_COLUMNS[:-1]
    rewritten = {(log.log_dir, log.topic, log.partition): log for log in plan.logs}

    def cells(size: LogSize) -> Iterator[str]:
        where = size.log_dir, size.topic, size.partition
        judged, log = facts.get(where), rewritten.get(where)
        yield printable(size.name)
        yield size_text(size.total_bytes)
        yield "" if size.dirty_bytes is None else size_text(size.dirty_bytes)
        yield f"{judged.judgement.cleanable.ratio:.1%}" if judged else ""
        yield _would_go(estimates[log.path]) if log and estimates else ""
        yield estimated_gain([log] if log else (), estimates)
        yield size_text(log.log_bytes) if log else ""
        yield f"{log.segment_count:,} → {len(log.groups):,}" if log else ""
        yield f"{log.first_dirty_offset}–{log.first_uncleanable_offset}" if log else ""
        yield from held(extent_of([size]))
        yield _word(size, judged)
        yield printable(size.log_dir)

    rows = [list(cells(size)) for size in sizes]
    return table_lines(f"log, {_ORDERS[order]}", columns, rows, width)


def _key(facts: LogFacts) -> tuple[str, str, int]:
    judgement = facts.judgement
    return judgement.log_dir, judgement.partition.topic, judgement.partition.partition


def _word(size: LogSize, judged: LogFacts | None) -> str:
    if size.standing is Standing.TO_CLEAN:
        is_overdue = judged is not None and judged.judgement.compaction_delay_ms > 0
        return "overdue" if is_overdue else "to clean"
    return "set aside" if size.standing is Standing.SET_ASIDE else "passed over"


def _would_go(estimate: Estimate) -> str:
    if estimate.least is None or estimate.most is None:
        return "not known"
    if estimate.is_exact:
        return f"{estimate.least:.1%}"
    return f"{estimate.least:.0%} to {estimate.most:.0%}"


def estimated_gain(logs: Sequence[LogPlan], estimates: Estimates | None) -> str:
    """What a run would free of these logs, by a sample; nothing where none was taken."""
    if not logs or estimates is None:
        return ""
    gain = gain_of(logs, estimates)
    return "not known" if gain.untold == len(logs) else gain_text(gain)


def held(extent: Extent) -> tuple[str, str]:
    """How many dirty bytes cannot be cleaned yet, and what keeps most of them."""
    if not extent.held_bytes or extent.held_by is None:
        return "", ""
    return size_text(extent.held_bytes), HELD_BY[extent.held_by]
