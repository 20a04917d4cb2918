"""From what became of a log to its report: sums by reason, and which problem means what."""

import pytest

from cleaner_jobs.messages import LogPlan, SegmentGroup, TaskProblem, Verdict
from compactor.cleaning.log_report import log_report
from compactor.cleaning.stage_values import LogResult, TransactionsOfLog
from compactor.cleaning.swapper import Swapped
from compactor.outcome.round_report import Counts, LogReport, LogStatus
from storage.file_names import Segment
from tests.support.made_values import part, rewritten

SEGMENTS = [Segment(base, 100 + base, 0, 0, None, 0, 0) for base in (0, 10, 20)]
PLAN = LogPlan(
    0, "/d", "t", 4, "/d/t-4", 5, 30,
    (SegmentGroup(tuple(SEGMENTS[:2])), SegmentGroup(tuple(SEGMENTS[2:]))), 1, 1, 1, (),
)  # fmt: skip


def report_of(problem: TaskProblem | None = None, dry_run: bool = False) -> LogReport:
    parts = [
        part(
            group=i,
            batches=3 + i,
            records=20 + i,
            superseded=4,
            null_keys=2,
            expired=7,
            aborted=3 + i,
            control_records=2 + i,
        )
        for i in range(2)
    ]
    verdicts = [Verdict(0, i, "v", 0, 2, 5, 1 + i, 0) for i in range(2)]
    pieces = [
        rewritten(
            group=i,
            log_bytes=50 + i,
            records_kept=6 + i,
            control_records_kept=1 + i,
            batches_kept=2,
            batches_rebuilt=1,
            batches_emptied=i,
        )
        for i in range(2)
    ]
    result = LogResult(
        plan=PLAN,
        problem=problem,
        parts=tuple(parts),
        verdicts=tuple(verdicts),
        rewritten=tuple(pieces),
        transactions=TransactionsOfLog(),
    )
    return log_report(result, Swapped(), dry_run)


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_log_that_went_through(dry_run: bool) -> None:
    report = report_of(dry_run=dry_run)
    assert report.status is (LogStatus.WOULD_CLEAN if dry_run else LogStatus.CLEANED)
    assert report.reason is None
    assert report.counts == Counts(
        records_read=41,
        records_kept=13 + 3,  # of data, of control
        dropped_superseded=4 + 4 + 5 + 5,  # within parts and over them
        dropped_tombstone=3,  # of the verdicts: in a part it may still be superseded
        dropped_null_key=4,
        dropped_aborted=3 + 4,
        dropped_marker=5 - 3,
        batches_read=7,
        batches_kept=4,
        batches_rebuilt=2,
        batches_emptied=1,
    )
    assert (report.segments_before, report.segments_after) == (3, 2)
    assert (report.bytes_before, report.bytes_after) == (330, 101)
    assert (report.first_dirty_offset, report.first_uncleanable_offset) == (5, 30)
    assert (report.log_dir, report.topic, report.partition) == ("/d", "t", 4)


@pytest.mark.parametrize(
    ("path", "position", "reason"),
    [("/a", -1, "/a: bad"), ("", -1, "bad"), ("/a", 0, "/a, byte 0: bad")],
)
def test_a_reason_names_what_is_known(path: str, position: int, reason: str) -> None:
    assert (
        report_of(TaskProblem(0, "input-output", path, position, "bad"), dry_run=True).reason
        == reason
    )
