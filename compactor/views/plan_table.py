"""A round's plan for a person: how large the problem is, on one screen of a terminal."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cleaner_jobs.messages import LogPlan
from compactor.host.printable import counted, iso_time, one_line, printable, size_text
from compactor.host.shell_commands import compactor, with_plan
from compactor.outcome.round_report import LogReport, LogStatus
from compactor.planning.expected import (
    Estimate,
    Estimates,
    Expected,
    expected_lines,
    gain_of,
    gain_text,
)
from compactor.planning.inventory import (
    Extent,
    LogSize,
    by_standing,
    by_topic,
    extent_of,
    sort_key_of,
)
from compactor.planning.log_retention import retention_report
from compactor.planning.outcomes import Standing
from compactor.planning.reasons import CODE_OF_BOUND
from compactor.planning.remedies import brief_of
from compactor.planning.round_plan import LogFacts, RoundPlan, notices_of
from compactor.planning.selection import BoundName
from compactor.planning.space import SpaceFacts, leaving_out
from compactor.settings.rules import Order
from compactor.views.fitting_table import (
    SHOWN_NAMES,
    Column,
    reason_lines,
    table_lines,
    whole_words,
)
from compactor.views.plan_json import PlanTotals
from compactor.views.report_table import RETENTION_ESTIMATE, kafka_lines, retention_lines
from storage.log.cluster_metadata import METADATA_DIR

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
    key = sort_key_of(order)
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
        f"{extent.to_clean:,}",
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
    """Return a line for each log."""
    key = sort_key_of(order)
    sizes = sorted(plan.inventory, key=lambda size: (*key(size), size.topic, size.partition))
    facts = {each.key: each for each in plan.facts}
    columns = _LOG_COLUMNS if len(plan.log_dirs) > 1 else _LOG_COLUMNS[:-1]
    rewritten = {log.key: log for log in plan.logs}

    def cells(size: LogSize) -> Iterator[str]:
        judged, log = facts.get(size.key), rewritten.get(size.key)
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


SHOWN_ROWS = 10
SHOWN_REASONS = 3  # of set-aside logs, where not everything is shown
NOT_REFUSED = (
    "A run would not be refused: no broker and no other run is at work here, the broker stopped "
    "cleanly, and there is room"
)
_ALL = "all: --all, or --format json"
_STANDING_COLUMNS = (
    Column("logs", 0),
    Column("size", 1),
    Column("dirty", 2),
    Column("dirty to clean", 3),
    Column("estimated gain", 1),
    Column("held back", 4),
    Column("by", 5, is_text=True),
)
STANDINGS = {
    Standing.TO_CLEAN: "to clean",
    Standing.BELOW_RATIO: "not dirty enough yet",
    Standing.OPEN_TRANSACTION: "blocked by an open transaction",
    Standing.HIGH_WATERMARK: "blocked by the high watermark",
    Standing.MIN_COMPACTION_LAG: "blocked by min.compaction.lag.ms",
    Standing.NOTHING_NEW: "nothing dirty but the active segment",
    Standing.NOT_COMPACTED: "not compacted by policy",
    Standing.UNKNOWN_POLICY: "policy not known",
    Standing.LEFT_OUT: "left out by a filter",
    Standing.ANOTHER_TOPIC: "of a topic that is gone",
    Standing.EMPTY: "empty",
    Standing.MOVING: "being moved to another directory",
    Standing.CLOCK_BEHIND: "written after this clock",
    Standing.NOT_REVIEWED: "not in the saved plan",
    Standing.OVER_BUDGET: "left out by the budget",
    Standing.METADATA_LOG: "the metadata log",
    Standing.SET_ASIDE: "set aside",
}


class PlanDetails(NamedTuple):
    """What is known beside the plan."""

    space: SpaceFacts | None = None
    refusals: Sequence[str] | None = (
        None  # why a run would not be done, in its words; None: unasked
    )
    warnings: Sequence[str] = ()
    expected: Expected | None = None
    estimates: Estimates | None = None  # by partition directory; None: nothing was sampled
    may_start: bool = True  # whether a broker that starts there goes well


class Screen(NamedTuple):
    """How much is shown, and what comes first."""

    order: Order = Order.GAIN
    top: int | None = SHOWN_ROWS  # rows of the list; None: everything


NOTHING_ELSE = PlanDetails()
ONE_SCREEN = Screen()


def plan_view(
    plan: RoundPlan, width: int, said: PlanDetails = NOTHING_ELSE, screen: Screen = ONE_SCREEN
) -> RenderableType:
    """The plan, to be printed on a console of that width: of many logs no more than a screen."""
    is_whole = screen.top is None or len(plan.inventory) <= screen.top
    whole = extent_of(plan.inventory)
    topics = len({size.topic for size in plan.inventory})
    parts: list[RenderableType] = [
        Text(f"Plan as of {iso_time(plan.as_of_ms)}; nothing is written"),
        *kafka_lines(plan.kafka, width),
        Text(
            f"{counted(whole.logs, 'log')} of {counted(topics, 'topic')}, "
            f"{size_text(whole.total_bytes)}: {size_text(whole.dirty_bytes)} dirty, of which a run "
            f"would clean {size_text(whole.gain_bytes)}"
        ),
    ]
    if plan.inventory:
        parts += [Text(), *_standing_lines(plan, whole, width, said.estimates), Text()]
        parts += (
            logs_lines(plan, width, screen.order, said.estimates)
            if is_whole
            else topics_lines(plan, width, screen.order, screen.top, said.estimates)
        )
        parts.append(Text())
    remedies = remedies_table(plan, said.may_start)
    parts += [remedies, Text()] if remedies else []
    parts += _reasons(plan, is_whole, width)
    parts += _retention(plan, is_whole, width)
    for line in _notice_lines(plan, said):
        parts += whole_words(one_line(line), width)
    for warning in said.warnings:
        parts += whole_words(f"Warning: {one_line(warning)}", width, "bold")
    for why in said.refusals or ():
        told = f"A run would be refused: {one_line(why)}"  # a command may stand in it
        parts.append(Text(told, "bold", no_wrap=True, overflow="ignore"))
    if said.refusals == () and plan.logs:
        parts += whole_words(NOT_REFUSED, width)
    return Group(*parts, *whole_words(_summary(plan), width))


def _notice_lines(plan: RoundPlan, said: PlanDetails) -> list[str]:
    lines = _remarks(plan)
    lines += expected_lines(said.expected) if said.expected else []
    return [*lines, *_space_lines(said.space), *notices_of(plan)]


def _standing_lines(
    plan: RoundPlan, whole: Extent, width: int, estimates: Estimates | None
) -> list[Text]:
    found = by_standing(plan.inventory)
    gain = estimated_gain(plan.logs, estimates)
    rows = [
        _standing_row(STANDINGS[standing], extent, gain if standing is Standing.TO_CLEAN else "")
        for standing, extent in found.items()
    ]
    if len(rows) > 1:
        rows.append(_standing_row("all", whole, gain))
    return table_lines("where the logs stand", _STANDING_COLUMNS, rows, width)


def _standing_row(name: str, extent: Extent, gain: str) -> list[str]:
    return [
        name,
        f"{extent.logs:,}",
        size_text(extent.total_bytes),
        size_text(extent.dirty_bytes) if extent.dirty_bytes else "",
        size_text(extent.gain_bytes) if extent.gain_bytes else "",
        gain,
        *held(extent),
    ]


def _reasons(plan: RoundPlan, is_whole: bool, width: int) -> list[RenderableType]:
    """Why logs are set aside; where everything is shown, also why others are passed over."""
    parts: list[RenderableType] = []
    for title, status in (
        ("Set aside, to be left as they are", LogStatus.SET_ASIDE),
        ("Passed over", LogStatus.PASSED_OVER),
    ):
        reports = [report for report in plan.not_cleaned if report.status is status]
        if reports and (is_whole or status is LogStatus.SET_ASIDE):
            shown = None if is_whole else SHOWN_REASONS
            parts += [Text(title, "bold"), *reason_lines(reports, shown, width, _ALL), Text()]
        elif reports:
            where = [log_dir.path for log_dir in plan.log_dirs]
            first = f"{reports[0].topic}-{reports[0].partition}"
            command = compactor("explain", *where, first)
            parts.append(Text("Why a log is not cleaned, for example the first (of all: --all):"))
            parts.append(Text(f"  {command}", no_wrap=True, overflow="ignore"))
    return parts


def _retention(plan: RoundPlan, is_whole: bool, width: int) -> list[RenderableType]:
    doomed = _doomed(plan)
    if not doomed:
        return []
    shown = len(doomed) if is_whole else SHOWN_NAMES
    return [Text(RETENTION_ESTIMATE, "bold"), *retention_lines(doomed, shown, width), Text()]


def _remarks(plan: RoundPlan) -> list[str]:
    """What else an operator should know before the round is run."""
    remarks = []
    for log_dir in plan.log_dirs:
        ignored = [found for found in log_dir.ignored if found[0] != METADATA_DIR]
        remarks += [
            f"{printable(log_dir.path)}: {printable(name)} is not looked at: {one_line(reason)}"
            for name, reason in ignored[:SHOWN_NAMES]
        ]
        if len(ignored) > SHOWN_NAMES:
            remarks.append(f"… and {len(ignored) - SHOWN_NAMES:,} more ({_ALL})")
        repairs = len(plan.checkpoint_repairs.get(log_dir.path, {}))
        if repairs:
            where = f"cleaner checkpoint of {printable(log_dir.path)}"
            remarks.append(f"Impossible entries in the {where}, corrected by a run: {repairs:,}")
    noted = sum(1 for facts in plan.facts if facts.notes)
    if noted:
        note = next(facts.notes[0] for facts in plan.facts if facts.notes)
        remarks.append(f"Note on {noted:,} of the logs: {one_line(note)}")
    return remarks


def _doomed(plan: RoundPlan) -> list[LogReport]:
    """What retention would delete of the segments as they are, as reports that say nothing else."""
    return [
        LogReport(
            log_dir=log.log_dir,
            topic=log.topic,
            partition=log.partition,
            status=LogStatus.PASSED_OVER,
            retention=retention_report(log.estimate),
        )
        for log in plan.retention
        if log.estimate.by_rule
    ]


def _space_lines(space: SpaceFacts | None) -> list[str]:
    """What a run needs of each file system; which logs it would leave out."""
    if space is None:
        return []
    rooms, found = space
    return [
        f"Room at {printable(rooms[device].path)}: up to {size_text(need.bytes)} needed at the "
        f"peak, {size_text(rooms[device].free_bytes)} free"
        for device, need in found.needs.items()
    ] + leaving_out(found)


def _summary(plan: RoundPlan) -> str:
    totals = PlanTotals.of(plan)
    return (
        f"Logs: {totals.to_clean:,} to clean, {totals.set_aside:,} set aside, "
        f"{totals.passed_over:,} passed over. "
        f"{size_text(totals.cleanable_bytes)} dirty, {size_text(totals.rewrite_bytes)} "
        "to read and rewrite."
    )


def saved_lines(path: str, log_dirs: Sequence[str]) -> list[str]:
    """What to do with a plan that was saved."""
    command = with_plan(path, log_dirs)
    return [f"Saved; to carry it out as it is here: {command}"]


def remedies_table(plan: RoundPlan, may_start: bool = True) -> Table | None:
    """Return what can be done, each thing once, and for which logs.

    may_start: whether a broker that starts goes well.
    """
    found: dict[str, str] = {}  # by what to do
    standings = {size.key: size.standing for size in plan.inventory}
    of_codes = {report.reason_code: standings[report.key] for report in plan.not_cleaned}
    for standing, label in STANDINGS.items():
        for code, of_code in of_codes.items():
            if code is not None and of_code is standing:
                found.setdefault(brief_of(code, may_start), label)
    for bound in dict.fromkeys(size.held_by for size in plan.inventory):
        if bound is not None and bound in CODE_OF_BOUND:
            found.setdefault(
                brief_of(CODE_OF_BOUND[bound], may_start), f"held back by: {HELD_BY[bound]}"
            )
    found.pop("", None)
    if not found:
        return None
    table = Table(
        title=Text("what to do", "bold"),
        title_justify="left",
        box=None,
        pad_edge=False,
        show_header=False,
    )
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for briefly, label in found.items():
        table.add_row(label, briefly)
    return table
