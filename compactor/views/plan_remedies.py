"""What to do about the logs of a plan that are not cleaned: a line for each reason."""

from rich.table import Table
from rich.text import Text

from compactor.planning.outcomes import Standing
from compactor.planning.reasons import CODE_OF_BOUND
from compactor.planning.remedies import brief_of
from compactor.planning.round_plan import RoundPlan
from compactor.views.plan_rows import HELD_BY

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


def remedies_table(plan: RoundPlan, may_start: bool = True) -> Table | None:
    """Where something can be done: which logs, and what; each thing to do once.

    may_start: whether a broker that starts goes well.
    """
    found: dict[str, str] = {}  # by what to do
    standings = {(s.log_dir, s.topic, s.partition): s.standing for s in plan.inventory}
    of_codes = {r.reason_code: standings[r.log_dir, r.topic, r.partition] for r in plan.not_cleaned}
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
