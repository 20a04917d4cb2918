"""The proof sees whatever is missing, double, out of order or another record."""

from collections.abc import Callable

import pytest

from cleaner_jobs.plan import LogPlan, SegmentGroup
from cleaner_jobs.task_values import Part, Rewritten, Section, Verdict
from compactor.proof import (
    check_offsets,
    expected_kept,
    why_result_is_wrong,
    why_scan_is_incomplete,
)
from storage.errors import CorruptFileError
from storage.segment import Segment
from tests.support.made_values import part, rewritten


def segment(base_offset: int, log_bytes: int) -> Segment:
    return Segment(base_offset, log_bytes, 0, 0, None, 0, 0)


PLAN = LogPlan(
    0, "/d", "t", 0, "/d/t-0", 0, 50,
    (
        SegmentGroup((segment(0, 100), segment(10, 0), segment(20, 60))),
        SegmentGroup((segment(30, 80),)),
    ),
    1, 1, 1, 1, (),
)  # fmt: skip


PARTS = [
    part(sections=(Section(0, 0, 70, 0, 0, 5),)),
    part(sections=(Section(0, 70, 100, 0, 6, 9), Section(2, 0, 60, 3, 20, 29))),
    part(group=1, sections=(Section(0, 0, 80, 0, 30, 49),)),
]


def test_a_log_that_was_read_whole_and_once() -> None:
    assert why_scan_is_incomplete(PLAN, PARTS) is None


def with_section(number: int, section: int, **values: int) -> list[Part]:
    sections = list(PARTS[number].sections)
    sections[section] = sections[section]._replace(**values)
    return [*PARTS[:number], PARTS[number]._replace(sections=tuple(sections)), *PARTS[number + 1 :]]


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ([], "segment 0 was"),
        (PARTS[1:], "segment 0 was"),
        ([PARTS[0], PARTS[2]], "segment 0 was"),
        (PARTS[:2], "segment 30 was"),
        ([PARTS[1], PARTS[0], PARTS[2]], "segment 0 was"),
        ([*PARTS, PARTS[2]], "segment 30 was"),
        ([PARTS[0], PARTS[0], *PARTS[1:]], "segment 0 was"),
        (with_section(1, 1, end=59), "segment 20 was"),
        (with_section(1, 1, segment=1), "segment 10 was"),
        (with_section(1, 1, start=1), "segment 20 was"),
    ],
)
def test_what_is_missing_double_or_out_of_order(parts: list[Part], problem: str) -> None:
    assert problem in (why_scan_is_incomplete(PLAN, parts) or "")


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        (with_section(1, 0, first_offset=5), f"{0:020}.log, byte 70: offset 5 is not above 5"),
        (with_section(1, 1, first_offset=9), f"{20:020}.log, byte 0: offset 9 is not above 9"),
        (with_section(2, 0, first_offset=29), f"{30:020}.log, byte 0: offset 29 is not above 29"),
        (with_section(2, 0, last_offset=50), f"{30:020}.log, byte 0: offset 50 is not below 50"),
    ],
)
def test_offsets_that_overlap_are_corrupt(parts: list[Part], told: str) -> None:
    check_offsets(PLAN, PARTS)
    with pytest.raises(CorruptFileError) as caught:
        check_offsets(PLAN, parts)
    assert str(caught.value).startswith(f"/d/t-0/{told}")


# 2^64 - 1 and 5 are kept or dropped, as sums modulo 2^64
# one entry more is of a record that goes, and is in the map alone
MAPPED = [
    part(entries=4, candidates=3, candidate_fingerprints=2**64 - 1),
    part(group=1, entries=4, candidates=4, candidate_fingerprints=20),
]
VERDICTS = [Verdict(0, 0, "v", 0, 2, 2, 1, 2**64 - 3)]
PIECES = [
    rewritten(records_kept=1, kept_fingerprints=15),
    rewritten(group=1, left_in_place=True, records_kept=3, kept_fingerprints=7),
]


def test_sums_that_fit() -> None:
    assert expected_kept(MAPPED, VERDICTS) == 4
    assert why_result_is_wrong(MAPPED, VERDICTS, PIECES, measured_only=False) is None
    assert why_result_is_wrong(MAPPED, VERDICTS, PIECES, measured_only=True) is None


@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize(
    "change",
    [
        lambda by: (MAPPED, VERDICTS, [PIECES[0]._replace(records_kept=1 + by), PIECES[1]]),
        lambda by: (MAPPED, [VERDICTS[0]._replace(superseded=2 + by)], PIECES),
        lambda by: (MAPPED, [VERDICTS[0]._replace(expired=1 + by)], PIECES),
        lambda by: ([MAPPED[0]._replace(candidates=3 + by), MAPPED[1]], VERDICTS, PIECES),
    ],
)
def test_a_count_that_is_off_by_one(
    change: Callable[[int], tuple[list[Part], list[Verdict], list[Rewritten]]], by: int
) -> None:
    for measured_only in (False, True):
        problem = why_result_is_wrong(*change(by), measured_only)
        assert problem is not None and "records were to stay" in problem


@pytest.mark.parametrize("number", [0, 1])
def test_another_record_than_the_one_that_was_to_stay(number: int) -> None:
    pieces = list(PIECES)
    pieces[number] = pieces[number]._replace(kept_fingerprints=pieces[number].kept_fingerprints ^ 1)
    problem = why_result_is_wrong(MAPPED, VERDICTS, pieces, measured_only=False)
    assert problem is not None and "other records" in problem
    assert why_result_is_wrong(MAPPED, VERDICTS, pieces, measured_only=True) is None


def test_a_verdict_that_is_lost_or_double() -> None:
    """A lost one that dropped nothing but what is superseded changes no sum."""
    for verdicts in ([], [*VERDICTS, VERDICTS[0]], [VERDICTS[0]._replace(partition=1)]):
        problem = why_result_is_wrong(MAPPED, verdicts, PIECES, measured_only=True)
        assert problem == "not each of 1 hash partitions was resolved once"
    assert why_result_is_wrong([], [], [], measured_only=False) is None


def test_a_group_that_is_lost_though_it_keeps_no_record() -> None:
    nothing_kept = PIECES[1]._replace(group=0, number=1)
    problem = why_result_is_wrong(MAPPED, VERDICTS, [PIECES[0], nothing_kept], measured_only=False)
    assert problem == "segment group 1 was not rewritten"
