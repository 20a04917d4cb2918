"""Indexes as a function of the batches, spec C-13.2, C-13.5, C-13.7, C-14.2, F-12.

Against indexes that Kafka 4.3.1 wrote, against the rule said again slowly, and against Kafka's
limits.
"""

import sys
from itertools import pairwise
from typing import NamedTuple
from unittest import mock

import numba  # noqa: F401 - loaded, so that the kernel is used
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.formats import offset_index, time_index
from storage.formats.segment_indexes import (
    IndexBuilder,
    Int64Array,
    SegmentIndexes,
    build_indexes,
    check_capacity,
)


class Batch(NamedTuple):
    size_bytes: int
    last_offset: int
    max_timestamp: int


def build(base_offset: int, batches: list[Batch], interval: int) -> SegmentIndexes:
    """Build indexes by the kernel, and hold against them what is built without it."""
    columns: Int64Array = np.array(batches, np.int64).reshape(-1, 3).T
    built = build_indexes(base_offset, columns[0], columns[1], columns[2], interval)
    assert "numba.core" in sys.modules
    with mock.patch.dict(sys.modules):
        del sys.modules["numba.core"]
        assert build_indexes(base_offset, columns[0], columns[1], columns[2], interval) == built
    return built


# A segment with base offset 0, as `oracle dump` lists its batches
SOURCE = [
    Batch(79, 16745, 50),
    Batch(129, 16746, 45),
    Batch(91, 16759, 70),
    Batch(89, 16760, 70),
    Batch(89, 16761, 20),
    Batch(89, 16800, 21),
    Batch(89, 16801, 22),
    Batch(89, 16802, 23),
    Batch(89, 16803, 71),
    Batch(89, 16804, 30),
    Batch(89, 16805, 31),
    Batch(89, 16806, 90),
    Batch(89, 16807, 80),
    Batch(89, 16808, 95),
]
# Kafka's cleaner dropped the first two batches and wrote the rest with another interval
CLEANED = SOURCE[2:]
KAFKAS_TIMES = (
    "0000000000000046000041770000000000000047000041a3"
    "000000000000005a000041a6000000000000005f000041a8"
)


@pytest.mark.parametrize(
    ("batches", "interval", "offset_entries", "time_entries"),
    [
        (SOURCE, 300, "0000417900000184000041a3000002e8000041a70000044c", KAFKAS_TIMES),
        (
            CLEANED,
            100,
            "00004179000000b4000041a100000166000041a300000218000041a5000002ca000041a70000037c",
            KAFKAS_TIMES,
        ),
    ],
)
def test_indexes_are_kafkas(
    batches: list[Batch], interval: int, offset_entries: str, time_entries: str
) -> None:
    indexes = build(0, batches, interval)
    assert indexes.offset_index.hex() == offset_entries
    assert indexes.time_index.hex() == time_entries
    assert indexes.problem is None


def test_the_example_of_the_interval() -> None:  # C-13.5, confirmed with Kafka
    offsets = [16760, 16790, 16829, 16850, 16889]
    batches = [
        Batch(size, offset, -1)
        for size, offset in zip([2381, 2413, 2696, 2991, 2854], offsets, strict=True)
    ]
    indexes = build(16740, batches, 4096)
    entries = offset_index.decode(indexes.offset_index, "")
    assert [(16740 + o, p) for o, p in entries.tolist()] == [(16829, 4794), (16889, 10481)]
    assert indexes.time_index == b""  # no batch has a timestamp


def test_the_example_of_interval_zero() -> None:  # F-19, F-12.2
    indexes = build(0, [Batch(70, 0, 1), Batch(70, 1, 2), Batch(70, 2, 3)], 0)
    assert offset_index.decode(indexes.offset_index, "").tolist() == [(1, 70), (2, 140)]
    assert time_index.decode(indexes.time_index, "").tolist() == [(2, 1), (3, 2)]


def test_a_segment_without_batches_has_empty_indexes() -> None:  # C-14.4
    assert build(7, [], 4096) == SegmentIndexes(b"", b"", 0, None)
    assert check_capacity(build(7, [], 4096), 0) is None


def slow_indexes(
    base_offset: int, batches: list[Batch], interval: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """C-13.2 and C-14.2, word by word."""
    offsets: list[tuple[int, int]] = []
    times: list[tuple[int, int]] = []
    position, since, largest = 0, 0, (-1, base_offset)

    def maybe_append() -> None:
        last_time = times[-1][0] if times else -1
        if largest[0] > last_time:
            times.append((largest[0], largest[1] - base_offset))

    for size, last_offset, max_timestamp in batches:
        if max_timestamp > largest[0]:
            largest = (max_timestamp, last_offset)
        if since > interval:
            offsets.append((last_offset - base_offset, position))
            maybe_append()
            since = 0
        since += size
        position += size
    maybe_append()
    return offsets, times


@st.composite
def segments(draw: st.DrawFn) -> tuple[int, list[Batch]]:
    base_offset = draw(st.sampled_from([0, 16740, 2**40]))
    offset = base_offset + draw(st.integers(0, 3)) - 1
    batches = []
    for _ in range(draw(st.integers(0, 30))):
        offset += draw(st.integers(1, 4))
        size = draw(st.sampled_from([61, 99, 100, 101, 200]))  # aimed at the interval
        batches.append(Batch(size, offset, draw(st.integers(-1, 6))))
    return base_offset, batches


@given(segments(), st.sampled_from([0, 99, 100, 101, 400]))
def test_indexes_are_those_of_the_rule(segment: tuple[int, list[Batch]], interval: int) -> None:
    base_offset, batches = segment
    indexes = build(base_offset, batches, interval)
    offsets, times = slow_indexes(base_offset, batches, interval)
    assert np.frombuffer(indexes.offset_index, offset_index.ENTRY).tolist() == offsets
    assert np.frombuffer(indexes.time_index, time_index.ENTRY).tolist() == times


@given(segments(), st.sampled_from([0, 100, 400]), st.lists(st.integers(0, 30), max_size=4))
def test_batches_may_come_in_any_number_of_stretches(
    segment: tuple[int, list[Batch]], interval: int, cuts: list[int]
) -> None:
    base_offset, batches = segment
    builder = IndexBuilder(base_offset, interval)
    for start, end in pairwise([0, *sorted(cuts), len(batches)]):
        columns: Int64Array = np.array(batches[start:end], np.int64).reshape(-1, 3).T
        builder.add(*np.ascontiguousarray(columns))
    assert builder.finish() == build(base_offset, batches, interval)


def kafka_has_room(base: int, batches: list[Batch], interval: int, index_bytes: int) -> bool:
    """C-13.7 and F-10.4 as Kafka meets them: on each append, not afterwards."""
    for count in range(len(batches)):
        offsets_before, _ = slow_indexes(base, batches[:count], interval)
        offsets_after, _ = slow_indexes(base, batches[: count + 1], interval)
        if len(offsets_after) == len(offsets_before):
            continue  # this batch appends nothing
        if len(offsets_before) >= index_bytes // 8:
            return False
        if time_entries_of_appends(base, batches[:count], interval) >= index_bytes // 12 - 1:
            return False
    return True


def time_entries_of_appends(base: int, batches: list[Batch], interval: int) -> int:
    """How many time entries there are while the segment is still open: without the final one."""
    appended = [Batch(size, offset, -1) for size, offset, _ in batches]
    entries, _ = slow_indexes(base, appended, interval)
    positions = {position for _, position in entries}
    times, position, largest = [-1], 0, -1
    for size, _, max_timestamp in batches:
        largest = max(largest, max_timestamp)
        if position in positions and largest > times[-1]:
            times.append(largest)
        position += size
    return len(times) - 1


@given(segments(), st.sampled_from([0, 100]), st.sampled_from([12, 24, 36, 40, 60, 80, 120]))
def test_indexes_without_room_are_refused_when_kafka_would(
    segment: tuple[int, list[Batch]], interval: int, index_bytes: int
) -> None:
    base_offset, batches = segment
    problem = check_capacity(build(base_offset, batches, interval), index_bytes)
    assert (problem is None) == kafka_has_room(base_offset, batches, interval, index_bytes)


def test_a_time_index_with_room_for_five_takes_no_append_on_four() -> None:  # F-10.4, run H
    def rising(batches: int) -> list[Batch]:
        return [Batch(70, n, n) for n in range(batches)]

    assert check_capacity(build(0, rising(5), 0), 60) is None  # four appends, and the final one
    problem = check_capacity(build(0, rising(6), 0), 60)
    assert problem == "time index entries outgrow segment.index.bytes, which has room for 4 + 1"
    flat = [Batch(70, n, 1) for n in range(8)]
    assert check_capacity(build(0, flat, 0), 60) is None  # seven offset entries, one time entry
    assert check_capacity(build(0, [*flat, Batch(70, 8, 1)], 0), 60) == (
        "8 offset index entries, segment.index.bytes has room for 7"
    )
    # a full time index refuses even an append that would write nothing
    assert check_capacity(build(0, [*rising(5), Batch(70, 5, 4)], 0), 60) == problem


@pytest.mark.parametrize("offset", [99, 100 + 2**31])
def test_an_offset_out_of_range_is_a_problem(offset: int) -> None:  # C-13.7
    indexes = build(100, [Batch(70, 100, 1), Batch(70, offset, 1)], 0)
    assert indexes.problem == f"offset {offset} does not fit a segment with base offset 100"
    assert indexes.problem_position == 70
    assert check_capacity(indexes, 10_485_760) == indexes.problem
    assert build(100, [Batch(70, 99 + 2**31, 1)], 0).problem is None


def test_a_log_past_two_gibibytes_is_a_problem() -> None:  # C-13.7, F-2.6
    assert build(0, [Batch(2**30, 0, 1), Batch(2**30 - 1, 1, 1)], 4096).problem is None
    indexes = build(0, [Batch(2**30, 0, 1), Batch(2**30, 1, 1)], 4096)
    assert indexes.problem == "a segment of 2147483648 bytes, at most 2147483647 are possible"
