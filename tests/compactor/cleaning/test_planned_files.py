"""What another writer does between two swaps is noticed; to look costs as the log is long."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import xxhash

from cleaner_jobs.messages import LogPlan
from cleaner_jobs.source_identity import LogChangedError
from compactor.cleaning import swapper
from compactor.cleaning.planned_files import LISTED_A_GROUP, PlannedFiles
from compactor.cleaning.stage_values import FinishedGroup
from compactor.cleaning.swapper import GroupSwapper, Swapped
from storage.file_names import INDEX, LOG, SNAPSHOT, TIME_INDEX, TXN_INDEX, file_name
from storage.files.local import LOCAL
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.partition_metadata import PARTITION_METADATA
from storage.log.log_dir import list_partition
from tests.compactor.cleaning.test_swapper import finished
from tests.support.files.watched import WatchedDisk
from tests.support.local_round import NoProgress
from tests.support.made_log import keyed, make_partition, plan_of
from tests.support.made_values import rewritten
from tests.support.reference_batch import ReferenceBatch, encode

GROUPS = 60
FILES = 4 * (GROUPS + 1) + 1  # .log, .index, .timeindex and .snapshot of each segment; the epochs
ROUND_TRIP = -(-FILES // LISTED_A_GROUP)  # groups between two listings
assert 3 < ROUND_TRIP < GROUPS // 2
ACTIVE = 2 * GROUPS


def planned(root: Path, groups: int = GROUPS, segments_a_group: int = 1) -> LogPlan:
    """Segments of two records each; the active one behind them."""
    count = groups * segments_a_group
    partition = make_partition(root, {2 * i: [keyed(2 * i, "ab")] for i in range(count + 1)})
    (partition / LEADER_EPOCH_CHECKPOINT).write_text("0\n0\n")
    bases = [2 * i for i in range(count)]
    cut = [bases[i : i + segments_a_group] for i in range(0, count, segments_a_group)]
    plan = plan_of(partition, cut, 2 * count)
    return replace(plan, files=list_partition(plan.path, plan.topic, plan.partition).files)


def noticed(plan: LogPlan, at: int, change: Callable[[], object]) -> tuple[int, str] | None:
    """The group before which a change is noticed that comes before group `at`, and the words."""
    files = PlannedFiles(plan, LOCAL)
    for group in range(GROUPS):
        if group == at:
            change()
        try:
            files.check(group)
        except LogChangedError as error:
            return group, str(error)
    return None


def test_nothing_is_noticed_where_nothing_changes(tmp_path: Path) -> None:
    """Nor what the round itself stages, swaps in and marks."""
    plan = planned(tmp_path)

    def swap() -> None:
        path = Path(plan.path)
        (path / f"{file_name(90, LOG)}.compactor-cafe-1").write_bytes(b"staged")
        (path / file_name(10, LOG)).rename(path / f"{file_name(10, LOG)}.deleted")
        (path / file_name(8, LOG)).write_bytes(b"cleaned")

    assert noticed(plan, 6, swap) is None


def test_what_is_checked_and_goes_in_with_later_groups_is_not_forgotten(tmp_path: Path) -> None:
    """Its time of change is another by then where its originals are kept, as second names."""
    plan = planned(tmp_path)
    files = PlannedFiles(plan, LOCAL)
    for group in range(GROUPS):
        files.check(group)
        os.link(f"{plan.path}/{file_name(2 * group, LOG)}", tmp_path / str(group))
    assert set(files.names) == {entry.name for entry in plan.files}


def grow(path: Path) -> None:
    with path.open("ab") as out:
        out.write(b"\0")


@pytest.mark.parametrize(
    ("kind", "change", "what"),
    [
        *((kind, grow, "changed") for kind in (LOG, INDEX, TIME_INDEX, SNAPSHOT)),
        *((kind, Path.unlink, "gone") for kind in (LOG, INDEX, TIME_INDEX, SNAPSHOT)),
        (TXN_INDEX, grow, "new"),
    ],
)
@pytest.mark.parametrize("at", [0, 7, GROUPS - 1])
def test_a_file_of_a_group_is_looked_at_right_before_its_swap(
    tmp_path: Path, at: int, kind: str, change: Callable[[Path], None], what: str
) -> None:
    plan = planned(tmp_path)
    path = Path(plan.path, file_name(2 * at, kind))
    told = f"{path}: {what} since the round was planned: the log is in use"
    assert noticed(plan, at, lambda: change(path)) == (at, told)


@pytest.mark.parametrize(
    "name",
    [
        *(file_name(ACTIVE, kind) for kind in (LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT)),
        LEADER_EPOCH_CHECKPOINT,
        PARTITION_METADATA,
    ],
)
@pytest.mark.parametrize("at", [1, 9])
def test_where_a_broker_writes_is_looked_at_before_every_group(
    tmp_path: Path, at: int, name: str
) -> None:
    plan = planned(tmp_path)
    found = noticed(plan, at, lambda: grow(Path(plan.path, name)))
    assert found is not None
    assert found[0] == at and found[1].startswith(f"{plan.path}/{name}: ")


@pytest.mark.parametrize("at", [1, 9, GROUPS - 1])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        (file_name(ACTIVE - 6, INDEX), grow),
        (file_name(ACTIVE - 6, LOG), Path.unlink),
        (file_name(ACTIVE + 2, LOG), grow),
        (file_name(ACTIVE - 1, SNAPSHOT), grow),
    ],
)
def test_any_other_change_is_noticed_soon_and_before_the_log_counts_as_cleaned(
    tmp_path: Path, at: int, name: str, change: Callable[[Path], None]
) -> None:
    plan = planned(tmp_path)
    found = noticed(plan, at, lambda: change(Path(plan.path, name)))
    if at == GROUPS - 1 and name < file_name(ACTIVE - 2, ""):
        assert found is None  # of a group that is swapped in already
        return
    assert found is not None
    assert at <= found[0] <= at + ROUND_TRIP and found[1].startswith(f"{plan.path}/{name}: ")


def test_what_stands_in_the_place_of_a_file_is_none(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    path = Path(plan.path, file_name(10, INDEX))

    def link() -> None:
        path.rename(tmp_path / "moved")
        path.symlink_to(tmp_path / "moved")

    found = noticed(plan, 5, link)
    assert found == (5, f"{path}: gone since the round was planned: the log is in use")


@pytest.mark.parametrize("segments_a_group", [1, 5])
def test_the_files_looked_at_are_a_constant_number_for_each_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, segments_a_group: int
) -> None:
    """Of a log four times as long four times as many, not sixteen times."""
    plans = [planned(tmp_path / str(n), n // segments_a_group, segments_a_group) for n in (80, 320)]
    monkeypatch.setattr(swapper, "swap_group", lambda *_: None)
    found = []
    for plan in plans:
        files = WatchedDisk(LOCAL)
        with GroupSwapper("run", NoProgress(), disk=files) as groups:
            for number in range(len(plan.groups)):
                groups.give(plan, finished(number, tmp_path))
            swapped = groups.finish()
        assert swapped == {plan.log_id: Swapped(groups=len(plan.groups))}
        listed = files.counts["list_directory"] * len(LOCAL.list_directory(plan.path))
        found.append(listed + files.counts["look_up"])
    assert found[1] < 4 * 1.3 * found[0]


def staged(plan: LogPlan, batch: ReferenceBatch) -> FinishedGroup:
    """A group of one batch, as a task leaves it."""
    data = {LOG: encode(batch), INDEX: b"", TIME_INDEX: b""}
    names = {kind: f"{plan.path}/{file_name(0, kind)}.compactor-cafe-1" for kind in data}
    for kind, name in names.items():
        Path(name).write_bytes(data[kind])
    piece = rewritten(
        log_file=names[LOG],
        index_file=names[INDEX],
        time_index_file=names[TIME_INDEX],
        log_bytes=len(data[LOG]),
        log_checksum=xxhash.xxh3_64_intdigest(data[LOG]),
        index_checksums=(xxhash.xxh3_64_intdigest(b""),) * 2,
    )
    return FinishedGroup(0, (), [piece])


def test_a_group_of_many_segments_takes_few_looks(tmp_path: Path) -> None:
    """Nothing of a source is looked for again by its name, but that it is still what it was."""
    plan = planned(tmp_path, groups=1, segments_a_group=GROUPS)
    files = WatchedDisk(LOCAL)
    with GroupSwapper("run", NoProgress(), disk=files) as swapping:
        swapping.give(plan, staged(plan, keyed(2 * GROUPS - 2, "ab")))
        assert swapping.finish() == {plan.log_id: Swapped(1)}
    counts = files.counts
    assert counts["look_up"] < GROUPS + 10 and counts["exists"] < 10
    assert counts["remove"] == 4 * GROUPS - 1  # the snapshots, too, but that of the first base
    assert counts["rename"] == 3 * 3  # of the new one's files
    assert counts["sync_directory"] == 5
