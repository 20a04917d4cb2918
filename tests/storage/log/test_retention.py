"""The rules of retention, with sizes and times set by hand (C-18)."""

from collections.abc import Sequence

import pytest

from storage.file_names import Segment
from storage.log.retention import Deletion, RetentionLimits, RetentionRule, decide, deletable

NOW_MS = 10_000


def segments(*sizes: int, step: int = 1) -> list[Segment]:
    """Bases 0, step, 2 * step, …; the last segment is the active one."""
    return [Segment(i * step, size, 0, 0, None, 0, 1) for i, size in enumerate(sizes)]


def by_time(times: Sequence[int], retention_ms: int | None = 1000, **limits: int) -> Deletion:
    made = segments(*[10] * len(times))
    rules = RetentionLimits(
        limits.get("log_start_offset", 0), limits.get("high_watermark"), NOW_MS, retention_ms
    )
    return decide(made, rules, lambda: len(times), lambda s: times[s.base_offset])


def bases(deletion: Deletion, rule: RetentionRule) -> list[int]:
    return [segment.base_offset for segment in deletion.by_rule.get(rule, ())]


def test_the_numbers_of_the_spec() -> None:
    """C-26, run N: 7000 goes, 9000 is not more than 1000 old and stops the walk, so 8000 stays."""
    deletion = by_time([7000, 9000, 8000, 10_000])
    assert bases(deletion, RetentionRule.TIME) == [0]
    assert (deletion.log_start_offset, deletion.rolls_at) == (1, None)


@pytest.mark.parametrize(("time_ms", "goes"), [(8999, True), (9000, False), (9001, False)])
def test_time_is_strict(time_ms: int, goes: bool) -> None:
    """C-18.2: now - largest timestamp > retention.ms."""
    assert bool(by_time([time_ms, NOW_MS]).by_rule) is goes


def test_all_expired_rolls_at_the_log_end() -> None:
    """C-18.3, run N: a new active segment, and the log starts there."""
    deletion = by_time([1, 2, 3])
    assert bases(deletion, RetentionRule.TIME) == [0, 1, 2]
    assert (deletion.log_start_offset, deletion.rolls_at) == (3, 3)


def test_an_empty_active_segment_stays_and_none_is_rolled() -> None:
    """C-18.2: S is not last and empty."""
    rules = RetentionLimits(0, None, NOW_MS, 1000)
    deletion = decide(segments(10, 10, 0), rules, lambda: 2, lambda _: 1)
    assert bases(deletion, RetentionRule.TIME) == [0, 1]
    assert (deletion.log_start_offset, deletion.rolls_at) == (2, None)


def test_an_empty_segment_that_is_not_the_last_goes_like_any_other() -> None:
    """C-18.6: what cleaning left empty is judged by its modification time."""
    rules = RetentionLimits(0, None, NOW_MS, 1000)
    deletion = decide(segments(0, 10), rules, lambda: 2, lambda s: 1 if not s.log_bytes else NOW_MS)
    assert bases(deletion, RetentionRule.TIME) == [0]


@pytest.mark.parametrize(("high_watermark", "gone"), [(0, []), (1, [0]), (2, [0, 1]), (9, [0, 1])])
def test_the_high_watermark_must_have_passed_the_segment(
    high_watermark: int, gone: list[int]
) -> None:
    """C-18.2: HW >= the base offset of the next segment."""
    deletion = by_time([1, 1, NOW_MS], high_watermark=high_watermark)
    assert bases(deletion, RetentionRule.TIME) == gone


@pytest.mark.parametrize(("high_watermark", "rolls_at"), [(1, None), (2, 2)])
def test_the_active_segment_needs_the_high_watermark_at_the_log_end(
    high_watermark: int, rolls_at: int | None
) -> None:
    assert by_time([1, 1], high_watermark=high_watermark).rolls_at == rolls_at


def size_rule(sizes: Sequence[int], retention_bytes: int) -> Deletion:
    rules = RetentionLimits(0, None, NOW_MS, None, retention_bytes)
    return decide(segments(*sizes), rules, lambda: len(sizes), lambda _: 1)


@pytest.mark.parametrize(
    ("retention_bytes", "gone"),
    [
        (100, []),  # excess 0: 0 - 40 < 0
        (61, []),  # 39 - 40 < 0
        (60, [0]),  # 40 - 40, then 0 - 30 < 0
        (30, [0, 1]),  # 70 - 40 - 30
        (101, []),  # the log is smaller
        (0, [0, 1, 2]),  # all 100
    ],
)
def test_size_takes_segments_that_the_excess_covers(retention_bytes: int, gone: list[int]) -> None:
    """C-18.2: 40, 30 and 30 bytes; the excess is computed once and used up."""
    deletion = size_rule([40, 30, 30], retention_bytes)
    assert bases(deletion, RetentionRule.SIZE) == gone
    assert deletion.rolls_at == (3 if len(gone) == 3 else None)


def test_size_stops_at_the_first_that_does_not_fit() -> None:
    assert (
        bases(size_rule([40, 10, 10], 35), RetentionRule.SIZE) == []
    )  # 25 - 40 < 0; 10 is not looked at


@pytest.mark.parametrize(
    ("log_start", "gone"), [(0, []), (4, []), (5, [0]), (9, [0]), (10, [0, 5]), (14, [0, 5])]
)
def test_log_start_takes_segments_wholly_below_it(log_start: int, gone: list[int]) -> None:
    """C-18.2, E-14: inside a segment it leaves that one; the last one is never taken."""
    rules = RetentionLimits(log_start, None, NOW_MS)
    deletion = decide(segments(10, 10, 10, step=5), rules, lambda: 15, lambda _: 1)
    assert bases(deletion, RetentionRule.LOG_START) == gone
    assert deletion.log_start_offset == log_start  # not lowered to the first segment's base


def test_the_rules_follow_one_another() -> None:
    """C-18.1: log start, then size on what is left, then time on what is left of that."""
    times = [NOW_MS, NOW_MS, 1, 1, NOW_MS]
    rules = RetentionLimits(1, None, NOW_MS, 1000, 30)
    deletion = decide(segments(*[10] * 5), rules, lambda: 5, lambda s: times[s.base_offset])
    assert [bases(deletion, rule) for rule in RetentionRule] == [[0], [1], [2, 3]]
    assert deletion.log_start_offset == 4


def test_nothing_is_read_that_does_not_matter() -> None:
    def unread(*_: object) -> int:
        raise AssertionError

    rules = RetentionLimits(1, None, NOW_MS)
    assert bases(decide(segments(10, 10), rules, unread, unread), RetentionRule.LOG_START) == [0]


@pytest.mark.parametrize(("end_offset", "expected"), [(1, []), (0, ["time"])])
def test_a_log_that_knows_its_end_asks_for_times_behind_the_high_watermark_alone(
    end_offset: int, expected: list[str]
) -> None:
    """L-23: the time index of an active segment is made when it is first asked."""
    asked: list[str] = []

    def largest_timestamp_ms(_: Segment) -> int:
        asked.append("time")
        return NOW_MS

    rules = RetentionLimits(0, 0, NOW_MS, 1000)
    deletable(segments(0), RetentionRule.TIME, rules, end_offset, largest_timestamp_ms)
    assert asked == expected


@pytest.mark.parametrize(("time_ms", "expected"), [(NOW_MS, []), (1, ["end"])])
def test_a_log_whose_end_has_to_be_read_is_asked_for_it_last(
    time_ms: int, expected: list[str]
) -> None:
    """It is read only where the rule would have the last segment go."""
    asked: list[str] = []

    def end_offset() -> int:
        asked.append("end")
        return 1

    rules = RetentionLimits(0, 0, NOW_MS, 1000)
    deletable(segments(10), RetentionRule.TIME, rules, end_offset, lambda _: time_ms)
    assert asked == expected
