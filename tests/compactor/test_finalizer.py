"""The swap: Kafka's order of renames and syncs, drift noticed first, staged files swept."""

import errno
import os
from pathlib import Path

import pytest

from cleaner_jobs.source_identity import LogChangedError
from compactor.finalizer import (
    StagedGroup,
    StagedSegment,
    mark_deleted,
    merge_groups,
    swap_group,
    sweep_staged,
)
from compactor.planning.layout import sources_of
from storage.file_names import (
    INDEX,
    LOG,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
)
from storage.files.local import LOCAL
from tests.support.file_operations import LOOK_UPS, failing
from tests.support.files.watched import Operation, WatchedFiles
from tests.support.made_log import files_of, keyed, make_partition, plan_of
from tests.support.reference_batch import encode

Step = tuple[str, ...]


@pytest.fixture
def files() -> WatchedFiles:
    return WatchedFiles(LOCAL)


def done(files: WatchedFiles) -> list[Step]:
    """What was renamed, removed and synced, in order, by short names."""

    def short(path: str) -> str:
        name = os.path.basename(path)
        return name.lstrip("0") if name[:1] == "0" and name[20:21] == "." else "directory"

    steps = ("rename", "remove", "sync_directory")
    return [(each.name, *map(short, each.paths)) for each in files.changes if each.name in steps]


def segment(partition: Path, base_offset: int, keys: str, *kinds: str) -> StagedSegment:
    """A staged segment, as a task leaves it: one batch of these keys, index files of no entries."""
    names = {}
    for kind in (LOG, INDEX, TIME_INDEX, *kinds):
        path = partition / (file_name(base_offset, kind) + ".compactor-run-1")
        is_log = kind == LOG and keys
        path.write_bytes(encode(keyed(base_offset, keys)) if is_log else b"")
        names[kind] = str(path)
    return StagedSegment(base_offset, *(names.get(kind, "") for kind in SEGMENT_SUFFIXES))


def staged(root: Path, keys: str = "abcdef") -> StagedGroup:
    """The group of 0, 4 and 9; the last one lies behind the destination's last batch."""
    partition = make_partition(
        root / "logs", {0: [keyed(0, "ab")], 4: [keyed(4, "a")], 9: [keyed(9, "b")], 20: []}
    )
    (partition / file_name(4, TXN_INDEX)).write_bytes(b"aborted")
    (partition / file_name(9, TXN_INDEX)).write_bytes(b"aborted")
    (partition / file_name(9, TIME_INDEX)).unlink()
    sources = sources_of(plan_of(partition, [[0, 4, 9]], 20))[0]
    return StagedGroup(str(partition), sources, (segment(partition, 0, keys),))


SYNC = ("sync_directory", "directory")
BESIDE: list[Step] = [
    # .log last: only it makes the others count
    ("rename", ".timeindex.compactor-run-1", ".timeindex.cleaned"),
    ("rename", ".index.compactor-run-1", ".index.cleaned"),
    ("rename", ".log.compactor-run-1", ".log.cleaned"),
    SYNC,
    ("rename", ".log.cleaned", ".log.swap"),
    ("rename", ".index.cleaned", ".index.swap"),
    ("rename", ".timeindex.cleaned", ".timeindex.swap"),
    SYNC,
    ("remove", ".log"),
    ("remove", ".index"),
    ("remove", ".timeindex"),
]
OF_4: list[Step] = [("remove", f"4{kind}") for kind in SEGMENT_SUFFIXES]
OF_9: list[Step] = [("remove", "9.log"), SYNC, ("remove", "9.index"), ("remove", "9.txnindex")]
NAMED: list[Step] = [
    SYNC,
    ("rename", ".log.swap", ".log"),
    SYNC,
    ("rename", ".index.swap", ".index"),
    ("rename", ".timeindex.swap", ".timeindex"),
    SYNC,
]
STALE: list[Step] = [("remove", "4.snapshot"), ("remove", "9.snapshot")]


def test_steps_are_kafkas_and_in_its_order(tmp_path: Path, files: WatchedFiles) -> None:
    """C-15.1: of each segment .log, .index, .timeindex, .txnindex; and a sync behind each step.

    What it renames to .deleted and removes later is removed.

    The .log of a source behind the destination's last batch is synced away before its index files.
    """
    group = staged(tmp_path)
    swap_group(files, group)
    assert done(files) == [*BESIDE, *OF_4, *OF_9, *NAMED, *STALE]


def test_an_empty_destination_lets_its_sources_go_from_the_front(
    tmp_path: Path, files: WatchedFiles
) -> None:
    """C-15.9: it has no range. Each .log is synced away before its index files."""
    group = staged(tmp_path, keys="")
    swap_group(files, group)
    first, of_0, of_4 = BESIDE[:-3], BESIDE[-3:], OF_4
    synced = [[of[0], SYNC, *of[1:]] for of in (of_0, of_4)]
    assert done(files) == [*first, *synced[0], *synced[1], *OF_9, *NAMED, *STALE]


def test_a_txnindex_does_not_outlive_its_segment_beside_an_empty_one(
    tmp_path: Path, files: WatchedFiles
) -> None:
    """C-15.9: an empty one stands in .swap to take its place, and gets no name."""
    group = staged(tmp_path, keys="")
    (Path(group.path) / file_name(0, TXN_INDEX)).write_bytes(b"aborted")
    swap_group(files, group)
    steps = [step for step in done(files) if ".txnindex" in step[-1] and "4" not in step[-1]]
    assert [step for step in steps if "9" not in step[-1]] == [
        ("rename", ".txnindex.cleaned", ".txnindex.swap"),
        ("remove", ".txnindex"),
        ("remove", ".txnindex.swap"),
    ]
    assert file_name(0, TXN_INDEX) not in files_of(Path(group.path))


def test_only_the_new_segment_is_left(tmp_path: Path, files: WatchedFiles) -> None:
    group = staged(tmp_path)
    others = {n: d for n, d in files_of(Path(group.path)).items() if int(n[:20]) == 20}
    swap_group(files, group)
    assert files_of(Path(group.path)) == {
        **others,
        file_name(0, LOG): encode(keyed(0, "abcdef")),
        file_name(0, INDEX): b"",
        file_name(0, TIME_INDEX): b"",
        file_name(0, SNAPSHOT): b"snapshot",
    }


def test_a_source_that_a_listing_has_left_out_does_not_stay_beside_its_successor(
    tmp_path: Path, files: WatchedFiles
) -> None:
    group = staged(tmp_path)
    swap_group(files, group, names=())
    assert [path.name for path in sorted(Path(group.path).glob("*.log"))] == [
        file_name(0, LOG),
        file_name(20, LOG),
    ]


def in_two(root: Path) -> StagedGroup:
    group = staged(root)
    partition = Path(group.path)
    (partition / file_name(0, TXN_INDEX)).write_bytes(b"old")
    later = segment(partition, 4, "x", TXN_INDEX)  # the base of a source, as it may be
    return group._replace(destinations=(*group.destinations, later))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_groups_that_go_in_as_one_take_one_more_sync_each(
    tmp_path: Path, files: WatchedFiles, count: int
) -> None:
    """Five for one; of several, one more for those above the lowest, and one for each of them."""
    bases = range(0, 10 * count, 10)
    logs = {base: [keyed(base, "ab"), keyed(base + 5, "a")] for base in bases}
    partition = make_partition(tmp_path / "logs", {**logs, 10 * count: []})
    plan = plan_of(partition, [[base] for base in bases], 10 * count)
    groups = [
        StagedGroup(str(partition), sources, (segment(partition, base, "abcdef"),))
        for base, sources in zip(bases, sources_of(plan), strict=True)
    ]
    swap_group(files, merge_groups(groups))
    assert done(files).count(SYNC) == (5 if count == 1 else 5 + count)
    for base in bases:
        assert (partition / file_name(base, LOG)).read_bytes() == encode(keyed(base, "abcdef"))
    assert len(list(partition.glob("*.log"))) == count + 1


def test_several_destinations_come_in_kafkas_order(tmp_path: Path, files: WatchedFiles) -> None:
    """C-15.1: to .swap in descending order, to their names in ascending order.

    The lowest is the last that recovery may find complete, and the first with its names.
    A .txnindex is renamed last of its segment; the source's own is out of the way by then.
    """
    group = in_two(tmp_path)
    swap_group(files, group)
    steps = done(files)
    first = steps.index(("rename", "4.log.cleaned", "4.log.swap"))
    assert [step for step in steps[first:] if step[0] != "remove"] == [
        *[("rename", f"4{kind}.cleaned", f"4{kind}.swap") for kind in SEGMENT_SUFFIXES],
        SYNC,
        ("rename", ".log.cleaned", ".log.swap"),
        ("rename", ".index.cleaned", ".index.swap"),
        ("rename", ".timeindex.cleaned", ".timeindex.swap"),
        SYNC,
        SYNC,  # behind the last source's .log
        SYNC,
        ("rename", ".log.swap", ".log"),
        SYNC,
        ("rename", ".index.swap", ".index"),
        ("rename", ".timeindex.swap", ".timeindex"),
        ("rename", "4.log.swap", "4.log"),
        SYNC,
        *[("rename", f"4{kind}.swap", f"4{kind}") for kind in (INDEX, TIME_INDEX, TXN_INDEX)],
        SYNC,
    ]
    assert files_of(Path(group.path)) == {
        **{n: d for n, d in files_of(Path(group.path)).items() if int(n[:20]) == 20},
        **{file_name(base, kind): b"" for base in (0, 4) for kind in (INDEX, TIME_INDEX)},
        file_name(0, LOG): encode(keyed(0, "abcdef")),
        file_name(4, LOG): encode(keyed(4, "x")),
        file_name(4, TXN_INDEX): b"",
        file_name(0, SNAPSHOT): b"snapshot",
        file_name(4, SNAPSHOT): b"snapshot",  # C-15.1, step 5: an old base that is a new one too
    }


def test_a_split_may_leave_the_base_of_its_source(tmp_path: Path, files: WatchedFiles) -> None:
    """C-16.3: then its snapshot is removed as that of any base that is gone.

    Recovery would leave the source, were there not an empty segment at its base offset (C-15.6).
    """
    group = staged(tmp_path)
    partition = Path(group.path)
    sweep_staged(LOCAL, group.path, ".compactor-")
    halves = tuple(segment(partition, base_offset, "x") for base_offset in (1, 3))
    swap_group(files, StagedGroup(group.path, group.sources[:1], halves))
    left = {path.name for path in partition.iterdir() if int(path.name[:20]) < 4}
    assert left == {file_name(base, kind) for base in (1, 3) for kind in (LOG, INDEX, TIME_INDEX)}
    assert ("remove", ".snapshot") in done(files)
    stand_in = [".log", ".index", ".timeindex"]
    at_its_base = [
        step for step in done(files) if step[-1] in {f"{kind}.swap" for kind in stand_in}
    ]
    assert at_its_base == [
        *[("rename", f"{kind}.cleaned", f"{kind}.swap") for kind in stand_in],
        *[("remove", f"{kind}.swap") for kind in stand_in],
    ]
    steps = done(files)
    assert steps[steps.index(("remove", ".log.swap")) + 1] == SYNC


@pytest.mark.parametrize("base_offset", [0, 4, 9])
@pytest.mark.parametrize("how", ["time", "size", "inode", "gone"])
def test_drift_is_noticed_before_anything_is_done(
    tmp_path: Path, files: WatchedFiles, base_offset: int, how: str
) -> None:
    group = staged(tmp_path)
    path = Path(group.path) / file_name(base_offset, LOG)
    stat = path.stat()
    if how == "time":
        os.utime(path, ns=(1, stat.st_mtime_ns + 1))
    elif how == "size":
        path.write_bytes(b"x" + path.read_bytes())
        os.utime(path, ns=(1, stat.st_mtime_ns))
    elif how == "inode":
        other = tmp_path / "other"
        other.write_bytes(path.read_bytes())
        os.utime(other, ns=(1, stat.st_mtime_ns))
        other.replace(path)
    else:
        path.unlink()
    before = files_of(Path(group.path))
    with pytest.raises((LogChangedError, FileNotFoundError)):
        swap_group(files, group)
    assert done(files) == []
    assert files_of(Path(group.path)) == before


def test_staged_files_are_swept_and_no_others(tmp_path: Path) -> None:
    kept = {"0.log", "0.log.cleaned", "compactor.txt", "partition.metadata"}
    for name in (*kept, "0.log.compactor-a-1", "0.index.compactor-b-2"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "x.compactor-directory").mkdir()
    sweep_staged(LOCAL, str(tmp_path), ".compactor-")
    assert {path.name for path in tmp_path.iterdir()} == kept | {"x.compactor-directory"}


@pytest.mark.parametrize("failing", range(1, 8))
def test_a_rename_that_fails_before_the_swap_leaves_the_old_log(
    tmp_path: Path, failing: int
) -> None:
    """Otherwise the log would be set aside as unfinished until a broker had settled it."""
    group = in_two(tmp_path)
    before = {
        name: data for name, data in files_of(Path(group.path)).items() if "compactor" not in name
    }

    def fail_once(operation: Operation) -> None:
        if operation.name == "rename" and watched.counts["rename"] == failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO), *operation.paths)

    watched = WatchedFiles(LOCAL, fail_once)
    with pytest.raises(OSError, match="Input/output"):
        swap_group(watched, group)
    sweep_staged(LOCAL, group.path, ".compactor-")
    assert files_of(Path(group.path)) == before


@pytest.mark.parametrize("kind", [LOG, INDEX])
def test_a_file_that_cannot_be_looked_up_is_not_taken_for_gone(tmp_path: Path, kind: str) -> None:
    """A source that stays beside its successor brings back what was cleaned away."""
    group = in_two(tmp_path)
    source = group.sources[-1].path.removesuffix(LOG) + kind
    with failing(source, LOOK_UPS), pytest.raises(OSError, match="Input/output") as error:
        mark_deleted(LOCAL, group.path, [each.base_offset for each in group.sources], (kind,))
    assert error.value.filename == source
