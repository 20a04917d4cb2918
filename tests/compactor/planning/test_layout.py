"""How work is cut and dealt: everything once, in order, in runs of about equal cost."""

from collections.abc import Callable, Iterator
from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleaner_jobs.messages import LogPlan, Part, PartSection, SegmentGroup, Stretch, Verdict
from compactor.planning import layout
from compactor.planning.layout import (
    deal_by_cost,
    deal_in_order,
    hash_partition_bits,
    pieces_of,
    resolve_tasks,
    rewrite_tasks,
    scan_tasks,
    share_bytes,
    sources_of,
    stretch_bytes,
    stretches_of,
    task_count,
)
from storage.file_names import Segment
from tests.support.made_values import part

MIB, GIB = 1 << 20, 1 << 30
COSTS = st.lists(st.integers(0, 1000), max_size=30)


def plan_of(groups: list[list[int]], log_id: int = 3) -> LogPlan:
    """Segments of these sizes, a hundred offsets apart."""
    numbers = iter(range(1000))
    made = tuple(
        SegmentGroup(
            tuple(
                Segment(100 * next(numbers), size, 0, 0, None, size + 7, size + 9, 3, 4)
                for size in of
            )
        )
        for of in groups
    )
    return LogPlan(log_id, "/d", "t", 0, "/d/t-0", 50, 10_000, made, 1, 1, 1, ())


def part_of(group: int, log_bytes: int, log_id: int = 3, bits: int = 0) -> Part:
    sections = (PartSection(0, 0, log_bytes, 0, 0, 0, 0),)
    return part(
        log_id=log_id, group=group, hash_partition_bits=bits, log_bytes=log_bytes, sections=sections
    )


@pytest.mark.parametrize(
    ("log_bytes", "cores", "expected"),
    [
        (0, 2, 2),
        (GIB, 2, 2),  # half a GiB for each
        (GIB + 1, 2, 4),
        (2 * GIB + 1, 2, 6),
        (100 * GIB, 2, 8),  # four for each core is enough to balance
        (1, 16, 16),
    ],
)
def test_few_long_tasks(log_bytes: int, cores: int, expected: int) -> None:
    assert task_count(log_bytes, cores) == expected


@pytest.mark.parametrize(
    ("log_bytes", "cores", "expected_mib"),
    [
        (0, 2, 8),  # smaller ones are not worth being put together again
        (16 * MIB - 1, 2, 8),
        (20 * MIB, 2, 10),
        (GIB, 2, 512),
        (GIB, 16, 64),
    ],
)
def test_the_share_of_a_task(log_bytes: int, cores: int, expected_mib: int) -> None:
    assert share_bytes(log_bytes, cores) == expected_mib * MIB


@pytest.mark.parametrize(
    ("log_bytes", "expected"),
    [
        (0, 0),
        (100 * (1 << 18) - 1, 0),
        (100 * (1 << 18), 1),
        (200 * (1 << 18), 2),
        (GIB, 6),
        (10_000_000_000, 9),
        (100_000_000_000, 9),  # two million keys each: as many as a merge holds in memory
        (1 << 60, 9),
    ],
)
def test_hash_partitions_grow_with_the_log(log_bytes: int, expected: int) -> None:
    assert hash_partition_bits(log_bytes) == expected


@given(COSTS, st.integers(1, 8))
def test_dealt_in_order_neighbours_stay_together(costs: list[int], tasks: int) -> None:
    dealt = deal_in_order(list(range(len(costs))), costs, tasks)
    assert list(chain.from_iterable(dealt)) == list(range(len(costs)))
    assert len(dealt) <= tasks and all(dealt)
    most = max(costs, default=0)
    for run in dealt:
        assert sum(costs[i] for i in run) <= sum(costs) / tasks + most + 1


@given(COSTS, st.integers(1, 8))
def test_dealt_by_cost_no_task_has_much_more_than_another(costs: list[int], tasks: int) -> None:
    dealt = deal_by_cost(list(range(len(costs))), costs, tasks)
    assert sorted(chain.from_iterable(dealt)) == list(range(len(costs)))
    assert len(dealt) <= tasks and all(run == sorted(run) for run in dealt)
    loads = [sum(costs[i] for i in run) for run in dealt]
    if len(dealt) == tasks:
        assert max(loads) - min(loads) <= max(costs)


def test_sources_are_named_as_they_were_listed() -> None:
    (first,), (second, third) = sources_of(plan_of([[5], [6, 0]]))
    assert first == ("/d/t-0/00000000000000000000.log", 0, 5, 12, 14, 3, 4)
    assert second.path == "/d/t-0/00000000000000000100.log"
    assert third.base_offset == 200


def positions(of: dict[int, list[int]]) -> layout.IndexPositions:
    """Index entries by base offset; asked for only where a segment is cut."""
    return lambda path: of[int(path[-24:-4])]


def test_segments_are_cut_at_index_entries_a_stretch_apart() -> None:
    step = layout.STRETCH_BYTES
    size = 3 * step + 10
    entries = [
        10,
        step - 1,
        step,
        step + 5,
        2 * step - 1,
        2 * step + 7,
        3 * step + 7,
        size,
        size + 9,
    ]
    plan = plan_of([[step, 0], [size]])
    stretches = stretches_of(plan, positions({200: entries}))
    assert [(s.group, s.segment, s.start, s.end) for s in stretches] == [
        (0, 0, 0, step),
        (1, 0, 0, step),
        (1, 0, step, 2 * step + 7),
        (1, 0, 2 * step + 7, 3 * step + 7),
        (1, 0, 3 * step + 7, size),
    ]
    assert {(s.log_id, s.first_dirty_offset) for s in stretches} == {(3, 50)}
    assert {s.hash_partition_bits for s in stretches} == {hash_partition_bits(step + size)}
    assert stretches[0].source == sources_of(plan)[0][0]


def test_without_an_index_a_segment_is_one_stretch() -> None:
    size = 5 * layout.STRETCH_BYTES
    stretches = stretches_of(plan_of([[size]]), lambda _: ())
    assert [(s.start, s.end) for s in stretches] == [(0, size)]


@pytest.mark.parametrize(
    ("log_bytes", "cores", "expected"),
    [
        (800 * MIB, 2, 64 * MIB),
        (800 * MIB, 16, 800 * MIB // 64),  # four for each
        (10 * MIB, 16, 4 * MIB),
        (100 * GIB, 16, 64 * MIB),
    ],
)
def test_many_cores_get_short_stretches(log_bytes: int, cores: int, expected: int) -> None:
    assert stretch_bytes(log_bytes, cores) == expected


@pytest.mark.parametrize("cores", [1, 2, 16, 48])
def test_every_core_gets_work_in_each_stage_of_one_log_of_800_mb(cores: int) -> None:
    """Index entries 4 KiB apart; each task ends its own parts, and where it is told to."""
    size = 800 * MIB // 6
    plan = plan_of([[size] * 6])
    entries = range(0, size, 4096)
    stretches = stretches_of(plan, lambda _: entries, length=stretch_bytes(plan.log_bytes, cores))
    tasks = scan_tasks(stretches, cores)
    lengths = [sum(s.end - s.start for s in task) for task in tasks]
    assert len(tasks) >= cores and max(lengths) < 1.4 * min(lengths)
    runs = [
        list(run) for task in tasks for run in split_after(task, lambda stretch: stretch.ends_part)
    ]
    parts = [part_of(0, sum(s.end - s.start for s in run), bits=5) for run in runs]
    pieces = pieces_of(plan, parts, plan.log_bytes // task_count(plan.log_bytes, cores))
    work = [
        sum(p.log_bytes for piece in task for p in piece.parts)
        for task in rewrite_tasks(pieces, cores)
    ]
    assert len(work) >= cores and max(work) < 1.6 * plan.log_bytes / cores
    assert cores < 2 or len(pieces) >= 2 * cores
    assert len(resolve_tasks([parts], cores)) >= min(cores, 32)


def split_after(
    items: list[Stretch], is_last: Callable[[Stretch], bool]
) -> Iterator[list[Stretch]]:
    run: list[Stretch] = []
    for item in items:
        run.append(item)
        if is_last(item):
            yield run
            run = []
    if run:
        yield run


def test_a_part_of_a_small_log_ends_with_it() -> None:
    plan = plan_of([[1 * MIB] * 3])
    (task,) = scan_tasks(stretches_of(plan, lambda _: ()), cores=1)
    assert [stretch.ends_part for stretch in task] == [False] * 3


def test_stretches_are_dealt_in_order_with_a_price_for_each_log() -> None:
    plan = plan_of([[1] for _ in range(10)])
    tasks = scan_tasks(stretches_of(plan, lambda _: ()), cores=2)
    assert [len(task) for task in tasks] == [5, 5]
    assert [s.group for task in tasks for s in task] == list(range(10))


def test_large_groups_are_cut_into_pieces_between_parts() -> None:
    plan = plan_of([[300, 100], [0], [50]])
    parts = [part_of(0, 100), part_of(0, 100), part_of(0, 100), part_of(0, 100), part_of(2, 50)]
    pieces = pieces_of(plan, parts, piece_bytes=200)
    assert [(p.group, p.number, p.of, len(p.parts), p.first_part) for p in pieces] == [
        (0, 0, 4, 1, 0),  # two for each of two tasks
        (0, 1, 4, 1, 1),
        (0, 2, 4, 1, 2),
        (0, 3, 4, 1, 3),
        (1, 0, 1, 0, 0),  # a group without a batch is a piece too
        (2, 0, 1, 1, 4),
    ]
    assert {p.log_id for p in pieces} == {3}


def test_a_piece_of_several_is_told_of_the_segments_that_its_parts_are_of() -> None:
    """Of all of them, in each piece, would be the square of their number."""
    plan = plan_of([[100] * 5, [50, 50]])
    of_segments = [(0, 1), (1,), (1, 3), (4,)]
    parts = [
        part_of(0, 100)._replace(sections=tuple(PartSection(s, 0, 1, 0, 0, 0, 0) for s in segments))
        for segments in of_segments
    ]
    pieces = pieces_of(plan, [*parts, part_of(1, 50)], piece_bytes=100)
    assert [p.first_source for p in pieces] == [0, 1, 1, 4, 0]
    of_group = sources_of(plan)
    assert pieces[0].sources == of_group[0][:2]
    assert pieces[1].sources == of_group[0][1:2]
    assert pieces[2].sources == of_group[0][1:4]  # what lies between, too
    assert pieces[3].sources == of_group[0][4:]
    assert pieces[4].sources == of_group[1]  # one piece is told of all


@given(
    st.lists(st.lists(st.integers(1, 100), max_size=6), min_size=1, max_size=4),
    st.integers(0, 300),
)
def test_pieces_hold_every_part_once(groups: list[list[int]], piece_bytes: int) -> None:
    parts = [part_of(number, size) for number, of in enumerate(groups) for size in of]
    pieces = pieces_of(plan_of([[sum(of)] for of in groups]), parts, piece_bytes)
    assert list(chain.from_iterable(piece.parts for piece in pieces)) == parts
    for piece in pieces:
        assert list(piece.parts) == parts[piece.first_part :][: len(piece.parts)]
    for number in range(len(groups)):
        own = [piece for piece in pieces if piece.group == number]
        assert [(p.number, p.of) for p in own] == [(i, len(own)) for i in range(len(own))]
        assert len(own) == 1 or all(piece.parts for piece in own)


def test_pieces_are_dealt_by_cost() -> None:
    sizes = [400 * MIB, 100 * MIB, 100 * MIB]
    parts = [part_of(number, size) for number, size in enumerate(sizes)]
    tasks = rewrite_tasks(pieces_of(plan_of([[size] for size in sizes]), parts, GIB), cores=1)
    assert [[piece.group for piece in task] for task in tasks] == [[0], [1, 2]]


def test_tasks_that_run_at_once_finish_groups_in_order() -> None:
    """What is finished before its turn to be swapped in takes room beside what it replaces."""
    sizes = [100 * MIB] * 5
    parts = [part_of(number, size) for number, size in enumerate(sizes)]
    pieces = pieces_of(plan_of([[size] for size in sizes]), parts, GIB)
    tasks = rewrite_tasks(pieces, cores=2)
    assert [[piece.group for piece in task] for task in tasks] == [[0, 2, 4], [1, 3]]


@pytest.mark.parametrize(
    ("dropped", "expected"),
    [
        (0, [[0, 2], [1, 3]]),
        (2125, [[3], [0, 1, 2]]),  # of 1000 each 125, 250, 500 and 1000 stay
        (2999, [[3], [0, 1, 2]]),
    ],
)
def test_a_piece_of_which_more_stays_is_more_to_do(dropped: int, expected: list[list[int]]) -> None:
    """What stays has to be written, and the newest piece loses nothing to others."""
    parts = [part_of(0, 200 * MIB)._replace(records=1000, survivors=1000)] * 4
    pieces = pieces_of(plan_of([[800 * MIB]]), parts, 400 * MIB)
    verdicts = [Verdict(3, 0, "", 0, 4, dropped, 0, 0)]
    tasks = rewrite_tasks(pieces, 2, {3: verdicts})
    assert [[piece.number for piece in task] for task in tasks] == expected


def test_what_stays_is_told_log_by_log() -> None:
    """A log of which nothing stays is less to do than one as large of which all does."""
    parts = {
        log_id: [part_of(0, 100 * MIB, log_id)._replace(records=10, survivors=10)]
        for log_id in (3, 4, 5)
    }
    pieces = [
        piece
        for log_id, of_log in parts.items()
        for piece in pieces_of(plan_of([[100 * MIB]], log_id), of_log, GIB)
    ]
    gone = {log_id: [Verdict(log_id, 0, "", 0, 1, 7, 3, 0)] for log_id in (3, 5)}
    tasks = rewrite_tasks(pieces, 2, gone)
    assert [[piece.log_id for piece in task] for task in tasks] == [[4], [3, 5]]


def test_tasks_that_follow_one_another_go_through_a_log_in_order() -> None:
    sizes = [256 * MIB] * 6
    parts = [part_of(number, size) for number, size in enumerate(sizes)]
    pieces = pieces_of(plan_of([[size] for size in sizes]), parts, GIB)
    tasks = rewrite_tasks(pieces, cores=2)
    assert [[piece.group for piece in task] for task in tasks] == [[0], [1, 2], [3], [4, 5]]
    assert len(rewrite_tasks(pieces * 200, cores=2)) == 64


def test_every_hash_partition_of_every_log_is_resolved_once() -> None:
    logs = [[part_of(0, 100, log_id=1, bits=2)] * 2, [part_of(0, 9, log_id=5)]]
    tasks = resolve_tasks(logs, cores=3)
    assert list(chain.from_iterable(tasks)) == [(1, 0), (1, 1), (1, 2), (1, 3), (5, 0)]
    assert 1 < len(tasks) <= 3
    assert all(a <= b for a, b in pairwise(chain.from_iterable(tasks)))
