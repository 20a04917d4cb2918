"""A run that keeps its originals can be undone: every byte, name, time and mode is as before it."""

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from compactor.cleaning.overflow import Splitting, split_overflowing
from compactor.originals.kept_manifest import RUN_FILE, KeptRun
from compactor.originals.originals_keeper import OriginalsKeeper, open_keeper
from compactor.originals.undo import UndoReport, UndoStatus, undo_run
from compactor.outcome.round_report import LogReport, LogStatus
from compactor.planning.round_plan import RoundPlan
from compactor.settings.config import Config, load_config
from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG, SNAPSHOT, file_name
from storage.files.files import Disk, Files
from storage.files.local import LOCAL
from storage.formats import checkpoint, clean_shutdown, leader_epoch_checkpoint
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT, EpochEntry
from tests.compactor.cleaning.test_overflow import SETTINGS as OVERFLOWING
from tests.compactor.cleaning.test_overflow import partition
from tests.compactor.plan_logs import plan_log_dirs
from tests.compactor.small_rounds import flip
from tests.golden import corpora
from tests.support.file_operations import LOOK_UPS, failing
from tests.support.files.watched import Operation, WatchedDisk
from tests.support.local_round import LocalRound
from tests.support.made_log import batch, keyed, make_partition, record
from tests.support.reference_batch import encode

COMPACT = load_config(settings={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"})
NOW_MS = 10_000
__all__ = ["partition"]  # a fixture

Found = dict[str, tuple[bytes, int, int]]


def different(one: Found, other: Found) -> set[str]:
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


class Kept:
    """A log directory, and a run over it that keeps its originals."""

    def __init__(self, local: LocalRound, log_dir: Path, config: Config = COMPACT) -> None:
        self.local, self.log_dir, self.config = local, log_dir, config
        self.run_dir = log_dir.parent / "originals" / "cafecafe"

    def run(
        self, keep: bool = True, now_ms: int = NOW_MS, files: Disk = LOCAL
    ) -> tuple[LogReport, ...]:
        log_dir = str(self.log_dir)
        plan = plan_log_dirs([log_dir], self.config, now_ms)
        keeper = None
        if keep:
            parent, run_id = str(self.run_dir.parent), self.run_dir.name
            keeper = OriginalsKeeper(parent, KeptRun(run_id, now_ms, (log_dir,)), files)
        splitting = Splitting(originals=keeper, disk=files)
        plan = split_overflowing(
            plan, lambda: plan_log_dirs([log_dir], self.config, now_ms), splitting
        )
        self.local.originals, self.local.disk = keeper, files
        try:
            return self.local.run(plan).logs
        finally:
            if keeper is not None:
                keeper.close()

    def undo(self, files: Files = LOCAL) -> list[UndoReport]:
        return undo_run(str(self.run_dir), files=files)

    def files(self) -> Found:
        """Every file but those of which there may be none: an empty checkpoint is as good."""
        found = {}
        for path in sorted(self.log_dir.rglob("*")):
            if path.is_file():
                stat = path.stat()
                mtime_ns = 0 if path.parent == self.log_dir else stat.st_mtime_ns
                name = str(path.relative_to(self.log_dir))
                found[name] = path.read_bytes(), mtime_ns, stat.st_mode
        return {name: of for name, of in found.items() if of[0] != b"0\n0\n"}


def merged(root: Path) -> Path:
    """Two logs of several groups; the snapshots of merged bases go."""
    for name in ("orders-0", "prices-3"):
        make_partition(
            root,
            {
                0: [keyed(0, "ab"), keyed(2, "ac")],
                4: [keyed(4, "A.b"), keyed(7, "d")],
                8: [keyed(8, "cdde")],
                12: [batch(*(record(i, b"k%d" % i, b"v" * 900) for i in range(12, 16)))],
                16: [keyed(16, "kk")],
                18: [keyed(18, "a")],
            },
            name,
        ).joinpath(file_name(4, INDEX)).chmod(0o600)
    ends = {("orders", 0): 19, ("prices", 3): 19}
    checkpoint.write(str(root / checkpoint.REPLICATION), ends)
    checkpoint.write(str(root / checkpoint.RECOVERY_POINT), ends)
    return root


SMALL_SEGMENTS = load_config(
    settings={
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0",
        "segment.bytes": "600",
    }
)


def test_merged_groups_come_back_and_the_next_run_does_the_same(
    local: LocalRound, tmp_path: Path
) -> None:
    kept = Kept(local, merged(tmp_path / "logs"), SMALL_SEGMENTS)
    before = kept.files()
    assert [log.status for log in kept.run()] == [LogStatus.CLEANED] * 2
    after = kept.files()
    assert before["orders-0/" + file_name(4, LOG)] and "orders-0/" + file_name(4, LOG) not in after
    assert len(list(kept.run_dir.rglob("*.json"))) > 3  # several groups in each log
    assert [report.status for report in kept.undo()] == [UndoStatus.UNDONE] * 2
    assert kept.files() == before
    again = kept.undo()  # nothing is left to do, and nothing happens
    assert [(r.status, r.segments) for r in again] == [(UndoStatus.AS_BEFORE, 0)] * 2
    assert kept.files() == before
    kept.run(keep=False)
    assert kept.files() == after


def test_a_cleaner_checkpoint_goes_back_to_what_it_was(local: LocalRound, tmp_path: Path) -> None:
    """Under a later entry the old log would count as clean: C-4.1, C-6."""
    kept = Kept(local, merged(tmp_path / "logs"))
    path = str(kept.log_dir / checkpoint.CLEANER_OFFSET)
    checkpoint.write(path, {("orders", 0): 4})
    kept.run()
    assert checkpoint.read(path) == {("orders", 0): 18, ("prices", 3): 18}
    kept.undo()
    assert checkpoint.read(path) == {("orders", 0): 4}


@pytest.mark.parametrize("lowered", [{("orders", 0): 2}, {}])
def test_a_cleaner_checkpoint_that_a_broker_has_lowered_is_not_raised(
    local: LocalRound, tmp_path: Path, lowered: dict[tuple[str, int], int]
) -> None:
    """C-4.1: what it has truncated, and others have appended since, is dirty."""
    kept = Kept(local, merged(tmp_path / "logs"))
    path = str(kept.log_dir / checkpoint.CLEANER_OFFSET)
    checkpoint.write(path, {("orders", 0): 4})
    kept.run()
    checkpoint.write(path, lowered)
    assert [report.status for report in kept.undo()] == [UndoStatus.UNDONE] * 2
    assert checkpoint.read(path) == lowered


@pytest.mark.parametrize("same_file_system", [True, False])
def test_originals_are_links_where_they_can_be(
    local: LocalRound, tmp_path: Path, same_file_system: bool
) -> None:
    kept = Kept(local, merged(tmp_path / "logs"))
    first = kept.log_dir / "orders-0" / file_name(0, LOG)
    inode = first.stat().st_ino
    os.setxattr(first, "user.mark", b"1")

    def across(operation: Operation) -> None:
        if operation.name == "link" and not same_file_system:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), *operation.paths)

    files = WatchedDisk(LOCAL, across)
    before = kept.files()
    kept.run(files=files)
    assert local.originals is not None
    found = [path for path in kept.run_dir.glob("0/*/*/*") if path.is_file()]
    size, told = sum(path.stat().st_size for path in found), local.originals.report()
    assert (told.path, told.files) == (str(kept.run_dir), len(found))
    linked_and_copied = (size, 0) if same_file_system else (0, size)
    assert (told.linked_bytes, told.copied_bytes) == linked_and_copied
    (copy,) = kept.run_dir.glob(f"0/orders-0/*/{file_name(0, LOG)}")
    assert (copy.stat().st_ino == inode) is same_file_system
    kept.undo(files)
    assert kept.files() == before
    assert first.stat().st_nlink == (2 if same_file_system else 1)
    assert os.getxattr(first, "user.mark") == b"1"


def test_every_kind_of_log_that_kafka_wrote_comes_back(local: LocalRound, tmp_path: Path) -> None:
    """Transactions, legacy formats, snapshots, retention: a share of the golden logs."""
    fleet = corpora.extracted()
    log_dir = tmp_path / "logs"
    names = {name for i, name in enumerate(corpora.partitions()) if not i % 12}
    shutil.copytree(
        fleet.before,
        log_dir,
        ignore=lambda path, found: set(found) - names if path == str(fleet.before) else (),
    )
    for path in fleet.before.iterdir():
        if path.is_file():
            shutil.copy(path, log_dir)
    clean_shutdown.write(str(log_dir))
    kept = Kept(local, log_dir, load_config(topic_configs=str(fleet.topic_configs)))
    before = kept.files()
    reports = kept.run(now_ms=fleet.now_ms)
    assert sum(report.status is LogStatus.CLEANED for report in reports) > 20
    after = kept.files()
    undone = {f"{r.topic}-{r.partition}": r.status for r in kept.undo()}
    changed = {name.partition("/")[0] for name in different(before, after) if "/" in name}
    assert undone.keys() == changed and len(changed) > 20
    assert set(undone.values()) == {UndoStatus.UNDONE}, undone
    # where nothing was replaced a log stays clean up to where it is known to be
    assert different(before, kept.files()) == {checkpoint.CLEANER_OFFSET}
    kept.run(keep=False, now_ms=fleet.now_ms)
    assert different(after, kept.files()) == set()


def test_a_split_segment_comes_back(local: LocalRound, partition: Path) -> None:
    kept = Kept(local, partition.parent, OVERFLOWING)
    before = kept.files()
    (log,) = kept.run()
    assert log.status is LogStatus.CLEANED and "split first" in log.notes[0]
    assert len(list(kept.run_dir.glob("0/orders-0/*.json"))) > 1
    assert [r.status for r in kept.undo()] == [UndoStatus.UNDONE]
    assert kept.files() == before


def test_a_log_directory_that_only_the_plan_behind_a_split_takes_on_is_kept_too(
    local: LocalRound, partition: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    log_dirs = [str(partition.parent), str(other)]

    def plan_again() -> RoundPlan:
        make_partition(other, {0: [keyed(0, "aab")], 3: [keyed(3, "c")]}, "prices-0")
        return plan_log_dirs(log_dirs, OVERFLOWING, NOW_MS)

    first = plan_log_dirs(log_dirs, OVERFLOWING, NOW_MS)
    with closing(open_keeper(str(tmp_path / "originals"), "cafecafe", NOW_MS, first)) as keeper:
        plan = split_overflowing(first, plan_again, Splitting(originals=keeper))
        local.originals = keeper
        assert [log.status for log in local.run(plan).logs] == [LogStatus.CLEANED] * 2
    log, original = other / "prices-0" / file_name(0, LOG), encode(keyed(0, "aab"))
    assert log.read_bytes() != original
    undone = undo_run(str(tmp_path / "originals" / "cafecafe"))
    assert [report.status for report in undone] == [UndoStatus.UNDONE] * 2
    assert log.read_bytes() == original


# logs that were changed since


def appended(partition: Path) -> None:
    """By a broker, to the active segment, and a new one behind it, the end of which is torn."""
    with open(partition / file_name(18, LOG), "ab") as out:
        out.write(encode(keyed(19, "what a broker writes")))
    (partition / file_name(39, LOG)).write_bytes(encode(keyed(39, "more")) + b"and no batch")


def flipped(partition: Path) -> None:
    flip(partition / file_name(0, LOG), 70)


def shorter(partition: Path) -> None:
    os.truncate(partition / file_name(0, LOG), 61)


def deleted(partition: Path) -> None:
    for path in partition.glob(f"{0:020}.*"):
        path.unlink()


def another_between(partition: Path) -> None:
    (partition / file_name(4, LOG)).write_bytes(b"")


def unfinished(partition: Path) -> None:
    """As nothing of ours leaves it: recovery does not touch it."""
    (partition / f"{file_name(0, LOG)}.swap").write_bytes(b"no batch")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (flipped, "has other bytes than those that the run left"),
        (shorter, f"{0:020}.log has 61 bytes, the run left "),
        (deleted, f"{0:020}.log, which the run left, is gone: deleted or cleaned again"),
        (another_between, f"{4:020}.log, which the run removed, is there again"),
        (
            unfinished,
            f"{0:020}.log.swap belongs to an unfinished swap. First: compactor recover /",
        ),
    ],
)
def test_a_log_that_was_changed_since_is_left_and_the_others_go_on(
    local: LocalRound, tmp_path: Path, change: Callable[[Path], None], told: str
) -> None:
    kept = Kept(local, merged(tmp_path / "logs"))
    before = kept.files()
    kept.run()
    change(kept.log_dir / "orders-0")
    changed = kept.files()
    orders, prices = kept.undo()
    assert (orders.status, prices.status) == (UndoStatus.REFUSED, UndoStatus.UNDONE)
    assert told in (orders.reason or "")
    now = kept.files()
    for name in now:
        if "/" in name:
            expected = changed if name.startswith("orders-0/") else before
            assert now[name] == expected[name], name
    entries = checkpoint.read(str(kept.log_dir / checkpoint.CLEANER_OFFSET))
    assert entries == {("orders", 0): 18}


def test_what_a_broker_has_appended_stays(local: LocalRound, tmp_path: Path) -> None:
    kept = Kept(local, merged(tmp_path / "logs"))
    before = kept.files()
    kept.run()
    appended(kept.log_dir / "orders-0")
    assert [report.status for report in kept.undo()] == [UndoStatus.UNDONE] * 2
    assert {name.partition("/")[2] for name in different(before, kept.files())} == {
        file_name(18, LOG),
        file_name(39, LOG),
    }


def test_indexes_that_a_broker_has_rebuilt_are_no_change(local: LocalRound, tmp_path: Path) -> None:
    kept = Kept(local, merged(tmp_path / "logs"))
    before = kept.files()
    kept.run()
    (kept.log_dir / "orders-0" / file_name(0, INDEX)).unlink()
    assert [report.status for report in kept.undo()] == [UndoStatus.UNDONE] * 2
    assert kept.files() == before


def test_a_kept_file_that_was_damaged_is_not_brought_back(
    local: LocalRound, tmp_path: Path
) -> None:
    kept = Kept(local, merged(tmp_path / "logs"))
    kept.run()
    after = kept.files()
    (path,) = kept.run_dir.glob(f"0/orders-0/*/{file_name(0, LOG)}")
    flip(path, 70)
    orders, prices = kept.undo()
    assert (orders.status, prices.status) == (UndoStatus.FAILED, UndoStatus.UNDONE)
    assert orders.reason == f"{path}, byte 0: not the file that was kept"
    now = kept.files()
    assert {n: now[n] for n in now if n.startswith("orders-0/")} == {
        n: after[n] for n in after if n.startswith("orders-0/")
    }


def test_what_was_kept_and_cannot_be_looked_up_is_not_taken_for_nothing(
    local: LocalRound, tmp_path: Path
) -> None:
    """It was: nothing to undo in that log directory, exit code 0."""
    kept = Kept(local, merged(tmp_path / "logs"))
    kept.run()
    after = kept.files()
    unseen = failing(str(kept.run_dir / "0"), LOOK_UPS)
    with unseen, pytest.raises(OSError, match="Input/output error"):
        kept.undo()
    assert kept.files() == after


def test_a_damaged_manifest_changes_nothing(local: LocalRound, tmp_path: Path) -> None:
    kept = Kept(local, merged(tmp_path / "logs"))
    kept.run()
    after = kept.files()
    manifest = min(kept.run_dir.glob("0/orders-0/*.json"))
    manifest.write_bytes(manifest.read_bytes().replace(b'"name": "0', b'"name": "../0'))
    with pytest.raises(CorruptFileError, match=r"000000\.json, byte 0: "):
        kept.undo()
    assert kept.files() == after


# crashes: of the run, of the undoing


class PowerLoss(BaseException):
    """No cleanup code runs."""


CHANGES = ("rename", "remove", "link", "replace_file")


def losing_power(at: int) -> WatchedDisk:
    """Files over which the power goes before a change, when so many were made."""

    def before(_: Operation) -> None:
        if sum(each.name in CHANGES for each in files.operations) > at:
            raise PowerLoss

    files = WatchedDisk(LOCAL, before)
    return files


def one_log(root: Path) -> Path:
    merged(root)
    shutil.rmtree(root / "prices-3")
    return root


def test_an_undoing_that_is_cut_short_anywhere_is_done_by_the_next(
    local: LocalRound, tmp_path: Path
) -> None:
    """Of a log with several groups, of which retention has deleted segments, too."""
    kept = Kept(local, one_log(tmp_path / "logs"), SOME)
    before = kept.files()
    kept.run()
    left = {path: tmp_path / "left" / path.name for path in (kept.log_dir, kept.run_dir)}
    for path, copy in left.items():
        shutil.copytree(path, copy)
    at, finished = 0, False
    while not finished:
        for path, copy in left.items():
            shutil.rmtree(path)
            shutil.copytree(copy, path)
        with suppress(PowerLoss):
            kept.undo(losing_power(at))
            finished = True
        assert [report.status for report in kept.undo()] in (
            [UndoStatus.UNDONE],
            [UndoStatus.AS_BEFORE],
        ), at
        assert different(before, kept.files()) == set(), at
        at += 1
    assert at > 30


def test_a_run_that_is_cut_short_anywhere_can_be_undone(local: LocalRound, tmp_path: Path) -> None:
    original = one_log(tmp_path / "original")
    at, finished = 0, False
    while not finished:
        log_dir = tmp_path / str(at) / "logs"
        shutil.copytree(original, log_dir)
        kept = Kept(local, log_dir, SOME)
        before = kept.files()
        with suppress(PowerLoss):
            kept.run(files=losing_power(at))
            finished = True
        if (kept.run_dir / RUN_FILE).exists():
            statuses = [report.status for report in kept.undo()]
            assert statuses in ([], [UndoStatus.UNDONE], [UndoStatus.AS_BEFORE]), at
            assert different(before, kept.files()) <= {checkpoint.CLEANER_OFFSET}, at
        at += 1
    assert at > 30


# what cannot be kept is not replaced


def test_without_room_for_the_originals_the_log_stays_as_it_is(
    local: LocalRound, tmp_path: Path
) -> None:
    kept = Kept(local, merged(tmp_path / "logs"))
    before = kept.files()

    def full(operation: Operation) -> None:
        path = operation.paths[0]
        if operation.name == "replace_file" and "originals" in path and "orders-0" in path:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    files = WatchedDisk(LOCAL, full)
    orders, prices = sorted(kept.run(files=files), key=lambda log: log.topic)
    assert (orders.status, prices.status) == (LogStatus.FAILED, LogStatus.CLEANED)
    assert "No space left on device" in (orders.reason or "")
    now = kept.files()
    assert {n for n in different(before, now) if n.startswith("orders")} == set()
    assert list(kept.run_dir.glob("0/orders-0/*")) == []


# retention


RETAINED = {
    "cleanup.policy": "compact,delete",
    "min.cleanable.dirty.ratio": "0",
    "segment.bytes": "600",
}
SOME = load_config(settings=RETAINED | {"retention.bytes": "100"})  # all below offset 16
ALL = load_config(settings=RETAINED | {"retention.ms": "1"})


@pytest.mark.parametrize("everything", [False, True])
def test_what_retention_deleted_comes_back(
    local: LocalRound, tmp_path: Path, everything: bool
) -> None:
    """C-18: with the log start and the leader epochs; an active segment that it made goes."""
    log_dir = merged(tmp_path / "logs")
    for name in ("orders-0", "prices-3"):
        epochs = log_dir / name / LEADER_EPOCH_CHECKPOINT
        leader_epoch_checkpoint.write(str(epochs), [EpochEntry(0, 0), EpochEntry(3, 13)])
        at_end = log_dir / name / file_name(19, SNAPSHOT)
        shutil.copy(at_end.with_name(file_name(18, SNAPSHOT)), at_end)
    kept = Kept(local, log_dir, ALL if everything else SOME)
    before = kept.files()
    for log in kept.run(now_ms=2_000_000_000_000 if everything else NOW_MS):
        assert log.retention.deleted.segments > 0, log
    starts = checkpoint.read(str(log_dir / checkpoint.LOG_START))
    assert set(starts.values()) == {19 if everything else 16}
    assert (log_dir / "orders-0" / file_name(19, LOG)).exists() is everything
    reports = kept.undo()
    assert [report.status for report in reports] == [UndoStatus.UNDONE] * 2, reports
    assert different(before, kept.files()) == set()
    assert [report.status for report in kept.undo()] == [UndoStatus.AS_BEFORE] * 2


def test_what_a_broker_deletes_after_an_undoing_does_not_come_back(
    local: LocalRound, tmp_path: Path
) -> None:
    """What it leaves may be what the run had left."""
    log_dir = merged(tmp_path / "logs")
    kept = Kept(local, log_dir, SOME)
    kept.run()
    left = kept.files()
    assert [report.status for report in kept.undo()] == [UndoStatus.UNDONE] * 2
    for name in kept.files().keys() - left.keys():
        (log_dir / name).unlink()
    for name in left:
        (log_dir / name).write_bytes(left[name][0])
    before = kept.files()
    assert [report.status for report in kept.undo()] == [UndoStatus.AS_BEFORE] * 2
    assert kept.files() == before


def test_an_active_segment_of_retention_with_data_stays(local: LocalRound, tmp_path: Path) -> None:
    log_dir = merged(tmp_path / "logs")
    kept = Kept(local, log_dir, ALL)
    before = kept.files()
    kept.run(now_ms=2_000_000_000_000)
    for name in ("orders-0", "prices-3"):
        (log_dir / name / file_name(19, LOG)).write_bytes(b"of a broker")
    assert [report.status for report in kept.undo()] == [UndoStatus.UNDONE] * 2
    now = kept.files()
    assert {name for name in different(before, now) if name in before} == set()
    assert now["orders-0/" + file_name(19, LOG)][0] == b"of a broker"


def test_epochs_that_have_come_since_stay(local: LocalRound, tmp_path: Path) -> None:
    log_dir = merged(tmp_path / "logs")
    epochs = str(log_dir / "orders-0" / LEADER_EPOCH_CHECKPOINT)
    leader_epoch_checkpoint.write(epochs, [EpochEntry(0, 0), EpochEntry(3, 13)])
    kept = Kept(local, log_dir, SOME)
    kept.run()
    cut = leader_epoch_checkpoint.read(epochs)
    assert cut == [EpochEntry(3, 16)]
    leader_epoch_checkpoint.write(epochs, [*cut, EpochEntry(4, 25)])
    kept.undo()
    assert leader_epoch_checkpoint.read(epochs) == [
        EpochEntry(0, 0),
        EpochEntry(3, 13),
        EpochEntry(4, 25),
    ]


def test_what_retention_deleted_stays_gone_once_the_log_was_cleaned_again(
    local: LocalRound, tmp_path: Path
) -> None:
    """A tombstone that came after it may be gone, too."""
    kept = Kept(local, merged(tmp_path / "logs"), SOME)
    kept.run()
    path = str(kept.log_dir / checkpoint.CLEANER_OFFSET)
    checkpoint.write(path, checkpoint.read(path) | {("orders", 0): 19})
    orders, prices = kept.undo()
    assert (orders.status, prices.status) == (UndoStatus.REFUSED, UndoStatus.UNDONE)
    assert orders.reason == "cleaned since: its cleaner checkpoint is at 19, the run left it at 18"


def test_a_log_start_that_was_moved_since_is_not_moved_back(
    local: LocalRound, tmp_path: Path
) -> None:
    """Somebody has deleted records: they do not come back."""
    log_dir = merged(tmp_path / "logs")
    kept = Kept(local, log_dir, SOME)
    kept.run()
    path = str(log_dir / checkpoint.LOG_START)
    checkpoint.write(path, checkpoint.read(path) | {("orders", 0): 19})
    orders, prices = kept.undo()
    assert (orders.status, prices.status) == (UndoStatus.REFUSED, UndoStatus.UNDONE)
    assert orders.reason == "the log start was moved since, to 19"


def test_a_log_that_is_gone_is_said_to_be_gone(local: LocalRound, tmp_path: Path) -> None:
    kept = Kept(local, merged(tmp_path / "logs"))
    kept.run()
    shutil.rmtree(kept.log_dir / "orders-0")
    orders, prices = kept.undo()
    assert (orders.status, prices.status) == (UndoStatus.FAILED, UndoStatus.UNDONE)
    assert orders.reason == f"{kept.log_dir}/orders-0: No such file or directory"
