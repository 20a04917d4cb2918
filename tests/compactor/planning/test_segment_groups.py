"""Grouping: numbers that Kafka confirmed, then properties that restate the rule (C-9)."""

from itertools import accumulate, chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.planning.segment_groups import SegmentLimits, group_segments
from storage.file_names import Segment

GIB = 1024**3


def segment(
    base_offset: int, log_bytes: int, index: int | None = 0, time_index: int | None = 0
) -> Segment:
    return Segment(base_offset, log_bytes, index, time_index, None, 0, 0)


def bases(
    segments: list[Segment], end: int, log_bytes: int = GIB, index_bytes: int = GIB
) -> list[list[int]]:
    groups = group_segments(segments, SegmentLimits(log_bytes, index_bytes), end)
    return [[member.base_offset for member in group.segments] for group in groups]


@pytest.mark.parametrize(
    ("segment_bytes", "expected"),
    [(490, [[0, 3, 5]]), (489, [[0, 3], [5]]), (349, [[0], [3, 5]])],
)
def test_sizes_add_up_to_segment_bytes_at_most(
    segment_bytes: int, expected: list[list[int]]
) -> None:
    """C-9.1 rule 1, confirmed: 210, 140 and 140 bytes."""
    log = [segment(0, 210), segment(3, 140), segment(5, 140)]
    assert bases(log, 7, segment_bytes) == expected


def test_a_segment_over_the_limits_by_itself_stays_alone() -> None:
    log = [segment(0, 500), segment(1, 500), segment(2, 1)]
    assert bases(log, 3, log_bytes=100) == [[0], [1], [2]]


@pytest.mark.parametrize(("limit", "expected"), [(24, [[0, 1]]), (23, [[0], [1]])])
def test_each_index_has_the_limit_for_itself(limit: int, expected: list[list[int]]) -> None:
    """C-9.1 rules 2 and 3."""
    by_offset = [segment(0, 1, index=16), segment(1, 1, index=8)]
    assert bases(by_offset, 2, index_bytes=limit) == expected
    by_time = [segment(0, 1, time_index=12), segment(1, 1, time_index=12)]
    assert bases(by_time, 2, index_bytes=limit) == expected
    both = [segment(0, 1, 16, 12), segment(1, 1, 8, 12)]
    assert bases(both, 2, index_bytes=limit) == expected


def test_indexes_count_by_whole_entries() -> None:
    """C-9.4; a missing one as empty."""
    log = [segment(0, 1, index=15, time_index=23), segment(1, 1, None, None)]
    assert bases(log, 2, index_bytes=12) == [[0, 1]]
    log.append(segment(2, 1, index=8))
    assert bases(log, 3, index_bytes=12) == [[0, 1], [2]]


def test_offsets_span_31_bits_by_the_estimate() -> None:
    """C-9.7, confirmed: only the estimate counts."""
    log = [segment(0, 70), segment(13, 70), segment(2147483652, 70)]
    assert bases(log, 2147483701) == [[0], [13], [2147483652]]


def test_an_empty_segment_joins_whatever_its_span_and_the_next_is_measured_from_the_group() -> None:
    """C-9.7, E-69."""
    log = [segment(0, 70), segment(13, 0), segment(2147483652, 70)]
    assert bases(log, 2147483701) == [[0, 13], [2147483652]]
    log = [segment(0, 70), segment(13, 0), segment(2147483600, 70)]
    assert bases(log, 2147483648) == [[0, 13, 2147483600]]
    assert bases(log, 2147483649) == [[0, 13], [2147483600]]


def test_empty_segments_make_one_group() -> None:
    """C-9.6."""
    assert bases([segment(0, 0), segment(5, 0), segment(9, 0)], 12, log_bytes=1) == [[0, 5, 9]]


def test_no_segments_make_no_group() -> None:
    assert bases([], 0) == []


LOG_LIMIT, INDEX_LIMIT = 100, 48
SIZES = st.sampled_from([0, 1, 49, 50, 51, 99, 100, 101])  # aimed at the limit
INDEX_SIZES = st.sampled_from([None, 0, 8, 16, 24, 40, 47, 48, 56])
TIME_INDEX_SIZES = st.sampled_from([None, 0, 12, 24, 36, 48, 59, 60])
GAPS = st.sampled_from([1, 1000, 2**31 - 1, 2**31, 2**31 + 1])


@st.composite
def adjacent_segments(draw: st.DrawFn) -> tuple[list[Segment], int]:
    ends = list(accumulate(draw(st.lists(GAPS, max_size=8)), initial=0))
    segments = [
        segment(base, draw(SIZES), draw(INDEX_SIZES), draw(TIME_INDEX_SIZES)) for base in ends[:-1]
    ]
    return segments, ends[-1]


@given(adjacent_segments())
def test_groups_keep_order_fit_and_cannot_be_longer(log: tuple[list[Segment], int]) -> None:
    """C-9.1, C-9.2."""
    segments, end = log
    limits = SegmentLimits(LOG_LIMIT, INDEX_LIMIT)
    groups = [list(group.segments) for group in group_segments(segments, limits, end)]
    end_of = dict(zip(segments, [*(s.base_offset for s in segments[1:]), end], strict=False))

    def fits(group: list[Segment]) -> bool:  # says the limits again, for the last to join
        newest = group[-1]
        return (
            sum(s.log_bytes for s in group) <= LOG_LIMIT
            and sum((s.index_bytes or 0) // 8 for s in group) <= INDEX_LIMIT // 8
            and sum((s.time_index_bytes or 0) // 12 for s in group) <= INDEX_LIMIT // 12
            and (not newest.log_bytes or end_of[newest] - 1 - group[0].base_offset < 2**31)
        )

    assert list(chain.from_iterable(groups)) == segments
    assert all(groups)
    assert all(fits(group[:size]) for group in groups for size in range(2, len(group) + 1))
    assert not any(fits([*left, right[0]]) for left, right in pairwise(groups))
