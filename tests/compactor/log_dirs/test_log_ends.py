"""A log that lost its first segments is told from one whose start has moved (F-13.6)."""

import random
from pathlib import Path

import pytest

from compactor import Log
from compactor.api import start_problems
from compactor.log_dirs.missing_logs import why_start_gone
from storage.codecs.compression import Codec
from storage.formats import checkpoint, leader_epoch_checkpoint
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from storage.log.log_dir import list_log_dir
from storage.log.log_manager import LogManager
from storage.log.manager_options import BY_HAND, ManagerOptions
from storage.log.scheduler import ManualScheduler
from tests.compactor.plan_logs import Shape, build
from tests.support.local_command import run_command
from tests.support.log_builder import Batch, Message, append

NOW_MS = 1_000_000
T = ("t", 0)


def said_of(data: Path) -> str | None:
    starts = checkpoint.read(str(data / checkpoint.LOG_START))
    return why_start_gone(list_log_dir(str(data)).partitions[0], starts)


def opened(data: Path) -> LogManager:
    def clock() -> int:
        return NOW_MS

    options = ManagerOptions(clock=clock, scheduler=ManualScheduler(clock), intervals=BY_HAND)
    return LogManager([str(data)], options)


def do_something(manager: LogManager, log: Log, chance: random.Random, epoch: int) -> None:
    step = chance.choice(("append", "append", "append", "roll", "delete", "expire", "refetch"))
    if step == "append":
        append(log, Batch([Message(b"a", b"1", NOW_MS)] * chance.randint(1, 3)), epoch)
        log.follow_end()
    elif step == "roll":
        log.roll()
    elif step == "delete":  # as DeleteRecords does
        log.increment_log_start(
            chance.randint(log.log_start_offset, max(log.high_watermark, log.log_start_offset))
        )
    elif step == "expire":
        log.delete_old_segments()
    elif chance.random() < 0.2:  # a follower that was away for long
        manager.truncate_fully(T, log.log_end_offset + chance.randint(0, 5))


@pytest.mark.parametrize("seed", range(60))
def test_however_the_start_of_a_log_moves_no_loss_is_said_of_it(tmp_path: Path, seed: int) -> None:
    """The engine moves epochs as Kafka's does (tests/engine has the transcripts)."""
    chance, data = random.Random(seed), tmp_path / "data"
    data.mkdir()
    settings = {"cleanup.policy": "delete", "retention.bytes": "200"}
    for start in range(3):
        with opened(data) as manager:
            manager.configure_topic("t", settings)
            log = manager.get(T) or manager.create(T)
            for step in range(chance.randint(5, 20)):
                do_something(manager, log, chance, 20 * start + step)
            log.follow_end()
        assert said_of(data) is None
    bases = [segment.base_offset for segment in list_log_dir(str(data)).partitions[0].segments]
    has_entry = bool(checkpoint.read(str(data / checkpoint.LOG_START)))
    if len(bases) == 1:
        return
    for path in (data / "t-0").glob(f"{bases[0]:020}.*"):
        path.unlink()
    epochs = leader_epoch_checkpoint.read(str(data / "t-0" / "leader-epoch-checkpoint"))
    is_proven = bool(epochs) and epochs[0].start_offset < bases[1] and not has_entry
    assert (said_of(data) is not None) is is_proven


@pytest.mark.parametrize(("recovery_point", "is_lost"), [(6, False), (7, True)])
def test_the_end_of_a_log_is_the_one_that_a_start_puts_in_place(
    tmp_path: Path, recovery_point: int, is_lost: bool
) -> None:
    """A cleaning of its last segment was cut short."""
    build(tmp_path, Shape("t"))
    checkpoint.write(str(tmp_path / checkpoint.RECOVERY_POINT), {T: recovery_point})
    for kind in (".log", ".index", ".timeindex"):
        path = tmp_path / "t-0" / f"{4:020}{kind}"
        path.rename(f"{path}.swap")
    assert bool(start_problems(tmp_path)) is is_lost
    for path in (tmp_path / "t-0").glob("*.swap"):
        path.unlink()
    assert [problem.outcome for problem in start_problems(tmp_path)] == ["loaded-with-loss"]


def test_a_log_of_which_a_swap_alone_is_left_ends_where_that_ends(tmp_path: Path) -> None:
    build(tmp_path, Shape("t"))
    checkpoint.write(str(tmp_path / checkpoint.RECOVERY_POINT), {T: 6})
    for path in sorted((tmp_path / "t-0").iterdir()):
        if path.name.startswith(f"{0:020}") and path.suffix != ".snapshot":
            path.rename(f"{path}.swap")
        elif path.suffix == ".log":
            path.unlink()
    assert [problem.outcome for problem in start_problems(tmp_path)] == ["loaded-with-loss"]


def test_doctor_misses_no_segment_that_a_start_puts_in_place(tmp_path: Path) -> None:
    """Two segments before it have the same keys, so no cleaning has removed one behind them."""
    build(tmp_path, Shape("t", segments=4))
    for path in list((tmp_path / "t-0").glob(f"{4:020}.*")):
        path.rename(f"{path}.swap")
    checks = run_command("doctor", tmp_path, "--format", "json").summary["log_dirs"][0]["checks"]
    assert [check for check in checks if "missing behind" in check["found"]] == []
    for path in (tmp_path / "t-0").glob("*.swap"):
        path.unlink()
    checks = run_command("doctor", tmp_path, "--format", "json").summary["log_dirs"][0]["checks"]
    assert len([check for check in checks if "missing behind" in check["found"]]) == 1


@pytest.mark.parametrize(("far", "is_lost"), [(2**31 - 2, True), (2**31 - 1, False)])
def test_a_log_whose_first_segment_may_have_been_split_begins_where_it_likes(
    tmp_path: Path, far: int, is_lost: bool
) -> None:
    """A split begins at the first batch that is left; only offsets too far apart are split."""
    log = tmp_path / "t-0"
    log.mkdir()
    for base in (3, far):
        records = [Record(base, NOW_MS, b"a", b"1")]
        (log / f"{base:020}.log").write_bytes(encode_batch(records, Codec.NONE, BatchOptions()))
    (log / "leader-epoch-checkpoint").write_bytes(b"0\n1\n0 0\n")
    assert (said_of(tmp_path) is not None) is is_lost
