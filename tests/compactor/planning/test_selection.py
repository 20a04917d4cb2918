"""Cleanable ranges, eligibility, order: Kafka's numbers, then a slow reference (C-2, C-4, C-5)."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.planning import selection
from compactor.planning.selection import Bound, BoundName, CleanableRange, DirtyFrom
from storage.file_names import Segment

OFFSETS = st.integers(0, 40)


def segment(base_offset: int, log_bytes: int) -> Segment:
    return Segment(base_offset, log_bytes, 0, 12, None, 0, 0)


# The log of C-26, run I: offsets 0-1 in 80 bytes, 2 and 3 in 70 each, active segment from 4 on.
KAFKAS_LOG = [segment(0, 80), segment(2, 70), segment(3, 70), segment(4, 70)]
END_OFFSET = 5


def active(segments: Sequence[Segment]) -> Bound:
    return Bound(BoundName.ACTIVE_SEGMENT, segments[-1].base_offset)


def whole_range(first_dirty_offset: int) -> CleanableRange:
    return selection.cleanable_range(KAFKAS_LOG, first_dirty_offset, [active(KAFKAS_LOG)])


@pytest.mark.parametrize(
    ("checkpoint", "log_start", "offset", "set_by", "is_rewritten"),
    [
        (None, 0, 0, DirtyFrom.LOG_START, False),
        (None, 3, 3, DirtyFrom.LOG_START, False),
        (2, 0, 2, DirtyFrom.CHECKPOINT, False),
        (3, 3, 3, DirtyFrom.CHECKPOINT, False),
        (2, 3, 3, DirtyFrom.CHECKPOINT_BELOW_START, True),
        (5, 0, 5, DirtyFrom.CHECKPOINT, False),  # the log end offset itself is fine
        (6, 0, 0, DirtyFrom.CHECKPOINT_PAST_END, True),
        (9, 0, 0, DirtyFrom.CHECKPOINT_PAST_END, True),  # run I, E-63
    ],
)
def test_first_dirty_offset(
    checkpoint: int | None, log_start: int, offset: int, set_by: DirtyFrom, is_rewritten: bool
) -> None:
    """C-4.1, C-4.2."""
    found = selection.first_dirty(checkpoint, log_start, END_OFFSET)
    assert found == (offset, set_by)
    assert found.rewrites_checkpoint is is_rewritten


def test_a_segment_that_holds_the_first_dirty_offset_counts_twice() -> None:
    """C-5.2, E-62; numbers of run I."""
    found = whole_range(1)
    assert found == (1, 4, 80, 220)
    assert found.ratio == pytest.approx(0.7333, abs=5e-5)


@pytest.mark.parametrize("checkpoint", [4, 5])
def test_a_log_cleaned_up_to_its_active_segment_is_never_eligible(checkpoint: int) -> None:
    """Run I, E-61: not with a ratio of 0 either, nor when it is overdue."""
    found = whole_range(checkpoint)
    assert found.cleanable_bytes == 0
    assert not found.is_eligible(min_cleanable_dirty_ratio=0.0, compaction_delay_ms=1)


def test_the_active_segment_counts_as_clean_where_the_checkpoint_is_beyond_its_base() -> None:
    """C-5.3."""
    assert whole_range(5) == (5, 4, 290, 0)
    assert whole_range(4) == (4, 4, 220, 0)


def test_a_log_of_one_segment_has_nothing_to_weigh() -> None:
    """C-5.3, E-60."""
    log = [segment(0, 500)]
    found = selection.cleanable_range(log, 0, [active(log)])
    assert found == (0, 0, 0, 0)
    assert found.ratio == 0
    assert not found.is_eligible(min_cleanable_dirty_ratio=0.0, compaction_delay_ms=1)


@pytest.mark.parametrize(
    ("bound", "first_uncleanable", "cleanable_bytes"),
    [(0, 0, 0), (1, 0, 0), (2, 2, 80), (3, 3, 150), (4, 4, 220), (5, 4, 220)],
)
def test_the_segment_that_holds_the_bound_is_not_cleaned(
    bound: int, first_uncleanable: int, cleanable_bytes: int
) -> None:
    """C-4.6, C-5.2, E-66."""
    bounds = [active(KAFKAS_LOG), Bound(BoundName.HIGH_WATERMARK, bound)]
    found = selection.cleanable_range(KAFKAS_LOG, 0, bounds)
    assert (found.first_uncleanable_offset, found.cleanable_bytes) == (
        first_uncleanable,
        cleanable_bytes,
    )


@pytest.mark.parametrize(
    ("high_watermark", "first_unstable", "expected"),
    [
        (10, None, (BoundName.HIGH_WATERMARK, 10)),
        (10, 9, (BoundName.OPEN_TRANSACTION, 9)),
        (10, 10, (BoundName.HIGH_WATERMARK, 10)),
        (10, 11, (BoundName.HIGH_WATERMARK, 10)),
    ],
)
def test_last_stable_offset(
    high_watermark: int, first_unstable: int | None, expected: tuple[BoundName, int]
) -> None:
    """C-4.5."""
    assert selection.last_stable_bound(high_watermark, first_unstable)[:2] == expected


def lookup(times: dict[int, int]) -> Callable[[Segment], int]:
    return lambda segment: times[segment.base_offset]


def test_min_lag_stops_at_the_first_segment_that_is_too_young() -> None:
    """C-4.4; run I: lag 3000 at 6000, so a largest timestamp of 3000 is in, one of 3001 is out."""
    times = lookup({0: 100, 2: 3000, 3: 3000})
    assert selection.min_lag_bound(KAFKAS_LOG, 0, times, 6000 - 3000) is None
    times = lookup({0: 100, 2: 3001})  # segment 3 is not asked for
    bound = selection.min_lag_bound(KAFKAS_LOG, 0, times, 6000 - 3000)
    assert bound is not None and bound[:2] == (BoundName.MIN_COMPACTION_LAG, 2)
    assert bound.cause == "the youngest record is 0.001 s too young"


def test_min_lag_looks_at_no_clean_segment_but_the_one_with_the_first_dirty_offset() -> None:
    times = lookup({0: 9000, 2: 9000, 3: 1000})
    assert selection.min_lag_bound(KAFKAS_LOG, 3, times, 5000) is None
    bound = selection.min_lag_bound(KAFKAS_LOG, 1, times, 5000)
    assert bound is not None and bound.offset == 0


def test_min_lag_says_nothing_of_the_active_segment() -> None:
    assert selection.min_lag_bound(KAFKAS_LOG, 4, lookup({}), 0) is None


@pytest.mark.parametrize(
    ("times", "now", "delay"),
    [
        ([3000], 7000, 0),  # run I: max lag 4000, first batch at 3000: not due at 7000,
        ([3000], 7001, 1),  # but at 7001
        ([9000, 3000, 8000], 7500, 500),
        ([None, 3000], 7001, 1),
        ([None], 7001, 0),
        ([0], 10**9, 0),  # C-4.7: 0 is ignored
        ([0, 5000], 9001, 1),
        ([], 7001, 0),
    ],
)
def test_max_lag(times: list[int | None], now: int, delay: int) -> None:
    """C-4.7."""
    assert selection.compaction_delay_ms(times, now - 4000) == delay


@pytest.mark.parametrize(
    ("clean", "cleanable", "threshold", "delay", "expected"),
    [
        (50, 50, 0.5, 0, False),  # strictly above
        (49, 51, 0.5, 0, True),
        (99, 1, 0.0, 0, True),
        (100, 0, 0.0, 0, False),
        (0, 100, 1.0, 0, False),
        (0, 100, 1.0, 1, True),
        (99, 1, 1.0, 1, True),
        (100, 0, 0.5, 1, False),
        (0, 0, 0.0, 1, False),
    ],
)
def test_eligibility(
    clean: int, cleanable: int, threshold: float, delay: int, expected: bool
) -> None:
    """C-5.3, C-5.5."""
    assert CleanableRange(0, 9, clean, cleanable).is_eligible(threshold, delay) is expected


def test_the_dirtiest_log_is_first_and_names_decide_between_equals() -> None:
    """C-5.6: being overdue gives no priority, and size neither."""
    logs = [
        ("b", 2, CleanableRange(0, 9, 50, 50)),
        ("b", 10, CleanableRange(0, 9, 5, 5)),
        ("z", 0, CleanableRange(0, 9, 0, 1)),
        ("a", 0, CleanableRange(0, 9, 60, 40)),
    ]
    logs.sort(key=lambda log: selection.dirtiest_first(log[2], log[0], log[1]))
    assert [log[:2] for log in logs] == [("z", 0), ("b", 2), ("b", 10), ("a", 0)]


# ---- a slow reference: the words of C-2 and C-5.2 over plain lists ------------------------------


def reference_between(segments: list[Segment], start: int, end: int) -> list[Segment]:
    if start == end:
        return []
    at_or_below = [s.base_offset for s in segments if s.base_offset <= start]
    first = max(at_or_below) if at_or_below else segments[0].base_offset
    return [s for s in segments if first <= s.base_offset < end]


def reference_inactive_from(segments: list[Segment], offset: int) -> list[Segment]:
    base_of_active = segments[-1].base_offset
    if offset >= base_of_active:
        return []
    return [s for s in reference_between(segments, offset, 10**9) if s.base_offset < base_of_active]


def reference_range(segments: list[Segment], first_dirty: int, bound: int) -> CleanableRange:
    uncleanable = max(first_dirty, min(bound, segments[-1].base_offset))
    following = reference_inactive_from(segments, uncleanable)
    end = following[0].base_offset if following else segments[-1].base_offset
    clean = [s for s in segments if s.base_offset < first_dirty]
    cleanable = reference_between(segments, min(first_dirty, end), end)
    return CleanableRange(
        first_dirty, end, sum(s.log_bytes for s in clean), sum(s.log_bytes for s in cleanable)
    )


@st.composite
def logs(draw: st.DrawFn) -> list[Segment]:
    start = draw(st.integers(0, 5))
    gaps = draw(st.lists(st.integers(1, 8), max_size=6))
    sizes = st.integers(0, 3).map(lambda size: size * 70)
    return [segment(base, draw(sizes)) for base in accumulate(gaps, initial=start)]


@given(logs(), OFFSETS, OFFSETS)
def test_segments_between_offsets_are_those_of_the_rule(
    segments: list[Segment], one: int, other: int
) -> None:
    """C-2.1, C-2.2."""
    start, end = sorted((one, other))
    assert list(selection.between(segments, start, end)) == reference_between(segments, start, end)
    found = selection.inactive_from(segments, start)
    assert list(found) == reference_inactive_from(segments, start)


@given(logs(), OFFSETS, OFFSETS)
def test_the_range_is_that_of_the_rule(segments: list[Segment], dirty: int, bound: int) -> None:
    """C-4.4, C-5.2."""
    bounds = [Bound(BoundName.HIGH_WATERMARK, bound), active(segments)]
    found = selection.cleanable_range(segments, dirty, bounds)
    assert found == reference_range(segments, dirty, bound)
    total = found.clean_bytes + found.cleanable_bytes
    if total:
        assert found.ratio == float(Fraction(found.cleanable_bytes, total))


@given(logs(), OFFSETS, OFFSETS, OFFSETS, st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.booleans())
def test_a_lower_bound_never_makes_a_log_eligible(
    segments: list[Segment], dirty: int, one: int, other: int, threshold: float, is_due: bool
) -> None:
    """So a log that is not eligible needs no search for open transactions."""
    lower, higher = sorted((one, other))

    def eligible(bound: int) -> bool:
        bounds = [Bound(BoundName.HIGH_WATERMARK, bound), active(segments)]
        found = selection.cleanable_range(segments, dirty, bounds)
        return found.is_eligible(threshold, int(is_due))

    assert eligible(higher) or not eligible(lower)
