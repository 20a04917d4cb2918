"""A partition directory is exchanged while we are at work: nothing changes in what takes its place.

Neither in what a link leads to nor in another directory, whatever was about to be changed.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from cleaner_jobs.staging import STAGED_MARKER
from compactor.cleaning import cleaner_manager, retention_round
from compactor.cleaning.overflow import Splitting, split_overflowing
from compactor.log_dirs.locked_log_dirs import lock_log_dirs
from compactor.originals.originals_keeper import open_keeper
from compactor.originals.undo import UndoStatus, undo_run
from compactor.outcome.round_report import LogReport, LogStatus
from compactor.recovery import leftovers
from compactor.recovery.log_dir_recovery import LoadRules, recover_log_dir
from compactor.settings.config import load_config
from storage.file_names import CLEANED, DELETED, INDEX, LOG, SWAP, file_name
from storage.files import held_directories
from storage.formats import checkpoint, clean_shutdown
from tests.compactor.cleaning.test_overflow import SETTINGS as OVERFLOWING
from tests.compactor.cleaning.test_overflow import partition as overflowing
from tests.compactor.plan_logs import build, plan_log_dirs
from tests.compactor.small_rounds import logs_in
from tests.support.exchanged import Exchange, before_call, before_operation
from tests.support.local_round import LocalRound
from tests.support.made_log import NOW_MS

__all__ = ["overflowing"]  # a fixture
COMPACT = load_config(settings={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"})
RETAINED = {"cleanup.policy": "compact,delete", "retention.ms": "1400"} | {
    "min.cleanable.dirty.ratio": "1"
}


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    found = logs_in(tmp_path)
    checkpoint.write(str(found.parent / checkpoint.REPLICATION), {("orders", 0): 13})
    return found


def cleaned(local: LocalRound, partition: Path) -> LogReport:
    log_dir = str(partition.parent)
    with lock_log_dirs([log_dir]):
        [log] = local.run(plan_log_dirs([log_dir], COMPACT, NOW_MS)).logs
    return log


def assert_failed(log: LogReport, exchange: Exchange) -> None:
    assert exchange.is_untouched()
    assert log.status is LogStatus.FAILED
    assert f"{exchange.partition}: another directory, or a link, has taken its place" in str(
        log.reason
    )
    cleaner = checkpoint.read(str(exchange.partition.parent / checkpoint.CLEANER_OFFSET))
    assert cleaner == {}


def leads_to(suffix: str) -> Any:
    return lambda *paths: paths[-1].endswith(suffix)


@pytest.mark.parametrize("for_a_link", [True, False])
@pytest.mark.parametrize(
    ("name", "suffix"),
    [("rename", LOG + CLEANED), ("rename", LOG + SWAP), ("remove", LOG), ("rename", INDEX)],
)
def test_a_swap(
    local: LocalRound, partition: Path, name: str, suffix: str, for_a_link: bool
) -> None:
    exchange = Exchange(partition, for_a_link)
    local.disk = before_operation(exchange, name, leads_to(suffix))
    assert_failed(cleaned(local, partition), exchange)


@pytest.mark.parametrize("name", ["remove", "link"])
def test_what_follows_a_swap_and_what_keeps_the_originals(
    local: LocalRound, partition: Path, name: str
) -> None:
    exchange = Exchange(partition)
    local.disk = before_operation(exchange, name)
    plan = plan_log_dirs([str(partition.parent)], COMPACT, NOW_MS)
    originals = partition.parent.parent
    local.originals = open_keeper(str(originals / "originals"), "run", NOW_MS, plan, local.disk)
    log = cleaned(local, partition)
    local.originals.close()
    assert_failed(log, exchange)


def test_a_task_that_stages(local: LocalRound, partition: Path) -> None:
    local.before["rewrite"] = exchange = Exchange(partition)
    assert_failed(cleaned(local, partition), exchange)


def test_a_task_of_another_process_that_stages(
    local: LocalRound, partition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds nothing but what it is told of: here it runs when nobody holds the directory."""
    exchange = Exchange(partition)
    held, log_dirs = held_directories._held, held_directories._log_dirs

    def begin() -> None:
        exchange()
        monkeypatch.setattr(held_directories, "_held", {})
        monkeypatch.setattr(held_directories, "_log_dirs", set())

    def end(rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
        monkeypatch.setattr(held_directories, "_held", held)
        monkeypatch.setattr(held_directories, "_log_dirs", log_dirs)
        return rows

    local.before["rewrite"], local.after["rewrite"] = begin, end
    assert_failed(cleaned(local, partition), exchange)


def test_the_entry_of_a_log_that_was_cleaned(
    local: LocalRound, partition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that was not cleaned must not count as if it were: its tombstones would go."""
    exchange = Exchange(partition)
    before_call(exchange, monkeypatch, cleaner_manager, "write_checkpoints")
    log = cleaned(local, partition)
    assert_failed(log, exchange)
    assert str(log.reason).startswith("cleaned, but the cleaner checkpoint was not written")


@pytest.mark.parametrize(
    ("name", "is_raised"),
    [
        ("list_partition", False),
        ("deletion_of", False),
        ("check_leader_epochs", False),
        ("raise_log_starts", True),
        ("delete_segments", True),
    ],
)
def test_retention(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_raised: bool
) -> None:
    """And the start of the log stays where it is as long as that can be."""
    log_dir = build(tmp_path / "d")
    partition = tmp_path / "d" / "t-0"
    exchange = Exchange(partition)
    with lock_log_dirs([log_dir]):
        plan = plan_log_dirs([log_dir], load_config(settings=RETAINED), 3300)
        before_call(exchange, monkeypatch, retention_round, name)
        [log] = local.run(plan).logs
    assert exchange.is_untouched()
    assert log.status is LogStatus.FAILED and str(partition) in str(log.reason)
    starts = checkpoint.read(f"{log_dir}/{checkpoint.LOG_START}")
    assert starts == ({("t", 0): 2} if is_raised else {})
    assert len(list(exchange.moved.glob("*.log"))) == 3


def test_a_split(overflowing: Path) -> None:
    log_dir, config = str(overflowing.parent), OVERFLOWING
    exchange = Exchange(overflowing)
    with lock_log_dirs([log_dir]):
        plan = split_overflowing(
            plan_log_dirs([log_dir], config, NOW_MS),
            lambda: plan_log_dirs([log_dir], config, NOW_MS),
            Splitting(disk=before_operation(exchange, "rename")),
        )
    assert exchange.is_untouched()
    [log] = plan.not_cleaned
    assert log.status is LogStatus.FAILED and "has taken its place" in str(log.reason)


def test_a_settling(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (partition / f"{file_name(4, LOG)}{DELETED}").touch()
    exchange = Exchange(partition)
    before_call(exchange, monkeypatch, leftovers, "settlement")
    with lock_log_dirs([str(partition.parent)]):
        [log] = recover_log_dir(str(partition.parent)).logs
    assert exchange.is_untouched()
    assert "has taken its place" in str(log.problem)


@pytest.mark.parametrize("name", ["truncate_file", "sync_file", "replace_file"])
def test_a_recovery(partition: Path, name: str) -> None:
    """Of a torn end, and of indexes. Files that are cut in place have a name in both."""
    log_dir = partition.parent
    (log_dir / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    log = partition / file_name(12, LOG)
    sound_bytes = log.stat().st_size
    with log.open("ab") as out:
        out.write(b"torn")
    (partition / file_name(8, INDEX)).write_bytes(b"another")
    exchange = Exchange(partition)
    rules, files = LoadRules(COMPACT, NOW_MS), before_operation(exchange, name)
    with lock_log_dirs([str(log_dir)], after_unclean_shutdown=True):
        [recovered] = recover_log_dir(str(log_dir), rules, files=files).logs
    assert exchange.is_untouched()
    assert "has taken its place" in str(recovered.problem)
    size = (exchange.elsewhere / log.name).stat().st_size
    assert size == sound_bytes + (4 if name == "truncate_file" else 0)


@pytest.mark.parametrize("name", ["look_up", "link", "rename"])
def test_an_undoing(local: LocalRound, partition: Path, name: str) -> None:
    """look_up: when its originals are beside it, before anything is swapped."""
    plan = plan_log_dirs([str(partition.parent)], COMPACT, NOW_MS)
    local.originals = open_keeper(str(partition.parent.parent / "originals"), "run", NOW_MS, plan)
    run_dir = local.originals.path
    assert cleaned(local, partition).status is LogStatus.CLEANED
    local.originals.close()
    exchange = Exchange(partition)

    def is_staged(*_: str) -> bool:
        return name != "look_up" or any(STAGED_MARKER in file for file in os.listdir(partition))

    [report] = undo_run(run_dir, files=before_operation(exchange, name, is_staged))
    assert exchange.is_untouched()
    assert report.status is UndoStatus.FAILED and "has taken its place" in str(report.reason)


def test_a_directory_that_has_come_since_is_left_alone(local: LocalRound, partition: Path) -> None:
    log_dir = str(partition.parent)
    with lock_log_dirs([log_dir]):
        new = logs_in(partition.parent.parent, "orders-1")
        before = os.listdir(new)
        reports = local.run(plan_log_dirs([log_dir], COMPACT, NOW_MS)).logs
    assert [log.status for log in reports] == [LogStatus.CLEANED, LogStatus.SET_ASIDE]
    assert "this directory has come since the work began" in str(reports[1].reason)
    assert os.listdir(new) == before
