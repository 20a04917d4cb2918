"""What a cleaning cut short has left: each crash point, then any cut or loss while it is settled.

A directory is a table of names and contents; `old` and `new` say which log a file belongs to.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import pytest

from compactor.recovery.leftovers import settlement
from storage.file_names import file_name
from storage.log.swap import Action, Step, complete_swaps

Directory = dict[str, str]
LOG_KINDS = (".log", ".index", ".timeindex")

# sources 0, 10 and 20 become one segment; 30 is active
SOURCES = (0, 10, 20)
END_OFFSET = 28


def files(base_offset: int, content: str, suffix: str = "") -> Directory:
    return {file_name(base_offset, kind) + suffix: content for kind in LOG_KINDS}


def snapshots(*offsets: int) -> Directory:
    return {file_name(offset, ".snapshot"): "snapshot" for offset in offsets}


def sources(*base_offsets: int, suffix: str = "") -> Directory:
    return {
        name: content
        for base_offset in base_offsets
        for name, content in files(base_offset, "old", suffix).items()
    }


OTHERS = {
    "leader-epoch-checkpoint": "epochs",
    "partition.metadata": "id",
    "notes.txt": "a person's",
}
REST = {**files(30, "active"), **snapshots(30, 34), **OTHERS}
OLD = {**sources(*SOURCES), **snapshots(10, 20), **REST}
NEW = {**files(0, "new"), **REST}


def ends(directory: Directory, end_offsets: Mapping[int, int]) -> dict[int, int]:
    """By what the executor would read; a log without records is one that says so."""
    return {
        base: base if directory[f"{file_name(base, '.log')}.swap"] == "empty" else end_offsets[base]
        for base in complete_swaps(directory)
    }


def apply(directory: Directory, steps: Sequence[Step]) -> Directory:
    after = dict(directory)
    for action, name, target in steps:
        if action is Action.REMOVE:
            del after[name]
        elif action is Action.RENAME:
            after[target] = after.pop(name)
    return after


def steps_of(directory: Directory, end_offsets: Mapping[int, int]) -> tuple[Step, ...]:
    return settlement(directory, ends(directory, end_offsets)).steps


def settled(directory: Directory, end_offsets: Mapping[int, int]) -> Directory:
    return apply(directory, steps_of(directory, end_offsets))


def after_cuts(directory: Directory, steps: Sequence[Step]) -> Iterator[Directory]:
    """After each step: a kill, and every loss of steps since the last sync.

    At most two steps that came through where some before them did not.
    """
    durable = 0
    for done in range(len(steps) + 1):
        yield apply(directory, steps[:done])
        pending = range(durable, done)
        for count in range(min(2, len(pending)) + 1):
            for kept in combinations(pending, count):
                yield apply(directory, [*steps[:durable], *(steps[i] for i in kept)])
        if done < len(steps) and steps[done].action is Action.SYNC:
            durable = done + 1


def assert_settles(directory: Directory, expected: Directory, **end_offsets: int) -> None:
    """With the same end however often, and wherever, it is cut short."""
    by_base = {int(name[1:]): end for name, end in end_offsets.items()} or {0: END_OFFSET}
    steps = steps_of(directory, by_base)
    assert apply(directory, steps) == expected
    for left in after_cuts(directory, steps):
        assert settled(left, by_base) == expected, left
    assert steps_of(expected, by_base) == ()


SWAPPED = files(0, "new", ".swap")
CLEANED = files(0, "new", ".cleaned")


@pytest.mark.parametrize(
    "left",
    [
        pytest.param({**OLD, **CLEANED}, id="while writing"),
        pytest.param({**OLD, f"{file_name(0, '.log')}.cleaned": "half"}, id="its log alone"),
        *(
            pytest.param(
                {**OLD, **dict([*SWAPPED.items()][:n]), **dict([*CLEANED.items()][n:])},
                id=f"step 1, {n} of 3 renamed",
            )
            for n in (1, 2)
        ),
    ],
)
def test_an_incomplete_swap_is_undone(left: Directory) -> None:
    """C-15.8, the first two rows."""
    assert_settles(left, OLD)


@pytest.mark.parametrize("retired", range(len(sources(*SOURCES)) + 1))
def test_a_complete_swap_is_finished(retired: int) -> None:
    """C-15.8, steps 1 and 2: whatever of the sources is .deleted by then; snapshots go as well."""
    of_sources = [*sources(*SOURCES)]
    left = {**OLD, **SWAPPED}
    for name in of_sources[:retired]:
        left[f"{name}.deleted"] = left.pop(name)
    assert_settles(left, NEW)


@pytest.mark.parametrize("renamed", [1, 2, 3])
def test_a_swap_whose_log_is_in_place_is_finished(renamed: int) -> None:
    """C-15.8, step 3, and before the .deleted files and stale snapshots are gone."""
    swapped = [*SWAPPED.items()]
    left = {**sources(*SOURCES, suffix=".deleted"), **snapshots(10, 20), **REST}
    left |= {name.removesuffix(".swap"): "new" for name, _ in swapped[:renamed]}
    left |= dict(swapped[renamed:])
    assert_settles(left, NEW)


@pytest.mark.parametrize("end_offset", [11, 17, 20])
def test_sources_behind_the_last_offset_stay(end_offset: int) -> None:
    """C-15.9: the last batches of the group were removed, so its range ends before them."""
    left = {**OLD, **SWAPPED}
    kept = {**files(0, "new"), **sources(20), **snapshots(20), **REST}
    assert_settles(left, kept, _0=end_offset)


def test_a_txnindex_of_the_source_goes_and_that_of_the_swap_comes() -> None:
    index = file_name(0, ".txnindex")
    assert_settles({**OLD, **SWAPPED, index: "old"}, NEW)
    assert_settles({**OLD, **SWAPPED, index: "old", f"{index}.swap": "new"}, {**NEW, index: "new"})


EMPTY = dict.fromkeys(SWAPPED, "empty")


def test_an_empty_swap_beside_all_of_its_sources_is_undone() -> None:
    """C-15.9; docs/differences.md: a broker would let it take the place of segment 0."""
    assert_settles({**OLD, **EMPTY}, OLD)


@pytest.mark.parametrize("retired", range(1, len(sources(*SOURCES)) + 1))
def test_an_empty_swap_that_has_begun_is_finished(retired: int) -> None:
    """C-15.9: its sources are going; those that stand stay, with what they held, and are cleaned
    again."""
    left = {**OLD, **EMPTY}
    for name in [*sources(*SOURCES)][:retired]:
        left[f"{name}.deleted"] = left.pop(name)
    standing = {base for base in SOURCES if file_name(base, ".log") in left}
    expected = {**files(0, "empty"), **REST}
    for base in standing:
        expected |= {n: "old" for n in files(base, "old") if n in left} | snapshots(base)
    assert_settles(left, expected)


def test_an_empty_swap_is_finished_where_another_source_may_have_gone() -> None:
    """Segment 10 is perhaps of the group: then segment 0 holds what it had superseded."""
    left = {**OLD, **EMPTY}
    for name in files(10, "old"):
        left[f"{name}.deleted"] = left.pop(name)
    expected = {**files(0, "empty"), **sources(20), **snapshots(20), **REST}
    assert_settles(left, expected)


SPLIT = (0, 10, 20)  # one source becomes three; each ends where the next begins
SPLIT_ENDS = {"_0": 9, "_10": 19, "_20": 29}
OVERFLOWING = {**files(0, "old"), **REST}


@pytest.mark.parametrize("finished", range(10))
def test_a_split_is_undone_while_its_lowest_is_not_swapped(finished: int) -> None:
    """C-16.5, first row: renamed in descending order, .log first."""
    order = [name for base in reversed(SPLIT) for name in files(base, "new")]
    suffixed = {n: f"{n}.{'swap' if i < finished else 'cleaned'}" for i, n in enumerate(order)}
    left = {**OVERFLOWING, **{suffixed[name]: "new" for name in order}}
    split = dict.fromkeys(order, "new")
    expected = {**OVERFLOWING, **(split if finished == 9 else {})}
    assert_settles(left, expected, **SPLIT_ENDS)


@pytest.mark.parametrize("renamed", range(1, 10))
def test_a_split_that_is_being_swapped_in_is_finished(renamed: int) -> None:
    """C-16.5, third row: in ascending order."""
    order = [name for base in SPLIT for name in files(base, "new")]
    left = {**files(0, "old", ".deleted"), **REST}
    left |= {n if i < renamed else f"{n}.swap": "new" for i, n in enumerate(order)}
    assert_settles(left, {**REST, **dict.fromkeys(order, "new")}, **SPLIT_ENDS)


def test_a_split_whose_base_is_higher_than_its_sources() -> None:
    """C-16.5, last row: the source is below the range; Kafka would leave it too."""
    left = {**files(0, "old"), **files(4, "new", ".swap"), **files(10, "new", ".swap"), **REST}
    expected = {**files(0, "old"), **files(4, "new"), **files(10, "new"), **REST}
    assert_settles(left, expected, _4=9, _10=19)


def test_a_cleaned_file_of_a_higher_base_leaves_a_lower_swap_complete() -> None:
    """C-15.5."""
    left = {**OLD, **SWAPPED, **files(30, "new", ".cleaned"), **files(40, "new", ".swap")}
    assert_settles(left, NEW)


LEFT_OVER = {
    f"{file_name(0, '.log')}.compactor-0a1b2c3d-7": "staged",
    f"{file_name(20, '.txnindex')}.compactor-0a1b2c3d-joined": "staged",
    f"{file_name(10, '.log')}.deleted": "of an earlier cleaning",
    f"{file_name(10, '.snapshot')}.deleted": "likewise",
    file_name(50, ".index"): "of a roll that did not get to its log",
    file_name(50, ".timeindex"): "likewise",
    file_name(17, ".snapshot"): "of a base that was merged away",
    f"{file_name(30, '.index')}.tmp": "half",
    "leader-epoch-checkpoint.tmp": "half",
    "partition.metadata.tmp": "half",
}


@pytest.mark.parametrize("name", LEFT_OVER)
def test_what_nobody_needs_goes(name: str) -> None:
    """C-15.5, F-16.1.1, F-16.1.3, F-14.4."""
    assert_settles({**OLD, name: LEFT_OVER[name]}, OLD)


def test_all_of_it_goes_at_once_and_beside_a_swap() -> None:
    assert_settles({**OLD, **LEFT_OVER}, OLD)
    assert_settles({**OLD, **SWAPPED, **LEFT_OVER}, NEW)


@pytest.mark.parametrize(
    "name",
    [
        "00000000000000000000-0000000001.checkpoint.deleted",  # of KRaft
        "backup.tmp",
        "5.txt",
        ".compactor",
        "00000000000000000031.snapshot.bak",
    ],
)
def test_what_is_somebody_elses_stays(name: str) -> None:
    directory = {**OLD, name: "x"}
    assert steps_of(directory, {}) == ()
    assert name in settled({**directory, **SWAPPED}, {0: END_OFFSET})


def test_snapshots_of_a_log_without_segments_stay() -> None:
    """There is no base offset to hold them against."""
    assert steps_of({**snapshots(4, 9), **OTHERS}, {}) == ()


def test_names_that_are_not_yet_on_disk_are_brought_there_first() -> None:
    """A killed run has renamed, and synced nothing: an unlink must not be on disk before that."""
    deleted = {f"{file_name(10, '.log')}.deleted": "source"}
    for left in ({**NEW, **deleted}, {**OLD, **SWAPPED}, {**OLD, **CLEANED}):
        assert steps_of(left, {0: END_OFFSET})[0] == Step(Action.SYNC)
