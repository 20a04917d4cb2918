"""Somebody removes `.lock`, or makes it anew and locks it, while we hold the one that was there.

A run that was stopped for a while (SIGSTOP, a suspended machine) finds it so: nothing more is
changed, and what the other one made is not removed.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from compactor.cleaning import cleaner_manager, retention_round
from compactor.command_line import cli
from compactor.errors import LockLostError
from compactor.log_dirs.locked_log_dirs import lock_log_dirs
from compactor.log_dirs.set_aside_memory import RememberedLogs
from compactor.originals import undo
from compactor.originals.originals_keeper import open_keeper
from compactor.originals.undo import undo_run
from compactor.outcome.round_report import LogStatus
from compactor.recovery.log_dir_recovery import recover_log_dir
from compactor.settings.config import load_config
from storage.file_names import CLEANED, DELETED, LOG, SWAP, file_name
from storage.files import held_directories
from storage.files.local import LOCAL, LocalFiles
from storage.formats import checkpoint
from tests.compactor.log_dirs.test_exchanged_directories import COMPACT, RETAINED
from tests.compactor.log_dirs.test_locked_log_dirs import other_process
from tests.compactor.plan_logs import build, plan_log_dirs
from tests.compactor.small_rounds import logs_in
from tests.support.exchanged import before_call, before_operation
from tests.support.file_states import state_of
from tests.support.local_round import LocalRound
from tests.support.made_log import NOW_MS


class Theft:
    """To be called when the lock is taken away; from then on nothing may change."""

    def __init__(self, log_dir: Path, and_made_anew: bool = True) -> None:
        self.log_dir, self.and_made_anew = log_dir, and_made_anew
        self.before: Any = None

    def __call__(self, *_: object) -> None:
        if self.before is None:
            (self.log_dir / ".lock").unlink()
            if self.and_made_anew:
                (self.log_dir / ".lock").write_text("another's")
            self.before = state_of(self.log_dir)

    def assert_nothing_followed(self) -> None:
        assert self.before is not None
        assert state_of(self.log_dir) == self.before
        assert (self.log_dir / ".lock").exists() is self.and_made_anew


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    found = logs_in(tmp_path)
    checkpoint.write(str(found.parent / checkpoint.REPLICATION), {("orders", 0): 13})
    return found


lost = pytest.raises(LockLostError, match=r"/\.lock: not the file that was locked at the beginning")


def test_another_owner_keeps_its_lock(partition: Path) -> None:
    path = partition.parent / ".lock"
    with lost, lock_log_dirs([str(partition.parent)]):
        path.unlink()
        with other_process(path) as said:
            assert said == "locked"
            before = state_of(partition.parent)
            LOCAL.remove(str(partition / file_name(0, LOG)))
    assert state_of(partition.parent) == before
    assert path.exists()


def test_what_stands_in_its_place_at_the_end_is_not_removed(partition: Path) -> None:
    path = partition.parent / ".lock"
    with lock_log_dirs([str(partition.parent)]):
        path.unlink()
        path.touch()
    assert path.exists()
    path.unlink()
    with lock_log_dirs([str(partition.parent)]):
        path.unlink()


@pytest.mark.parametrize("and_made_anew", [True, False])
@pytest.mark.parametrize(
    "change", ["rename", "remove", "link", "replace_file", "truncate_file", "private"]
)
def test_no_change_is_made(partition: Path, change: str, and_made_anew: bool) -> None:
    source, target = str(partition / file_name(0, LOG)), str(partition / "new")
    arguments: dict[str, tuple[Any, ...]] = {
        "rename": (source, target),
        "remove": (source,),
        "link": (source, target),
        "replace_file": (source, b""),
        "truncate_file": (source, 1),
        "private": (target, os.O_CREAT | os.O_WRONLY),
    }
    theft = Theft(partition.parent, and_made_anew)
    with lost, lock_log_dirs([str(partition.parent)]):
        theft()
        module = held_directories if change == "private" else LOCAL
        getattr(module, change)(*arguments[change])
    theft.assert_nothing_followed()


def test_a_directory_in_which_it_is_held_no_longer(partition: Path) -> None:
    """Its name leads to another one, whose lock is not ours."""
    log_dir = partition.parent
    with lost, lock_log_dirs([str(log_dir)]):
        descriptor = os.open(log_dir, os.O_RDONLY)
        (log_dir / ".lock").rename(log_dir.parent / "away")
        os.close(descriptor)
        LOCAL.remove(str(partition / file_name(0, LOG)))


@pytest.mark.parametrize(
    ("name", "suffix"),
    [("rename", CLEANED), ("rename", SWAP), ("remove", LOG), ("rename", LOG)],
)
def test_a_round_ends_in_the_middle_of_a_swap(
    local: LocalRound, partition: Path, name: str, suffix: str
) -> None:
    """What is left a starting broker, or the next run, settles."""
    log_dir = str(partition.parent)
    theft = Theft(partition.parent)
    local.disk = before_operation(theft, name, lambda *paths: paths[-1].endswith(suffix))
    with lost, lock_log_dirs([log_dir]):
        local.run(plan_log_dirs([log_dir], COMPACT, NOW_MS))
    theft.assert_nothing_followed()
    local.disk = LOCAL
    with lock_log_dirs([log_dir]):
        recover_log_dir(log_dir)
        plan_log_dirs([log_dir], COMPACT, NOW_MS)
        [log] = local.run(plan_log_dirs([log_dir], COMPACT, NOW_MS)).logs
    assert log.status is LogStatus.CLEANED


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (cleaner_manager, "write_checkpoints"),
        (cleaner_manager, "_sweep"),
        (LocalFiles, "link"),
        (checkpoint, "write"),
    ],
)
def test_a_round_ends_before_whatever_it_was_about_to_do(
    local: LocalRound, partition: Path, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    log_dir = str(partition.parent)
    theft = Theft(partition.parent)
    before_call(theft, monkeypatch, module, name)
    with lost, lock_log_dirs([log_dir]):
        (partition / "00000000000000000000.log.compactor-run-x").touch()  # for the sweep
        plan = plan_log_dirs([log_dir], COMPACT, NOW_MS)
        local.originals = open_keeper(
            str(partition.parent.parent / "originals"), "run", NOW_MS, plan
        )
        try:
            local.run(plan)
        finally:
            local.originals.close()
    theft.assert_nothing_followed()


@pytest.mark.parametrize(
    "name", ["list_partition", "check_leader_epochs", "raise_log_starts", "delete_segments"]
)
def test_retention(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    log_dir = build(tmp_path / "d")
    theft = Theft(tmp_path / "d")
    with lost, lock_log_dirs([log_dir]):
        plan = plan_log_dirs([log_dir], load_config(settings=RETAINED), 3300)
        before_call(theft, monkeypatch, retention_round, name)
        local.run(plan)
    theft.assert_nothing_followed()


def test_what_is_remembered(partition: Path, local: LocalRound) -> None:
    log_dir = str(partition.parent)
    (partition / file_name(0, LOG)).write_bytes(b"not a batch at all" * 9)
    theft = Theft(partition.parent)
    with lost, lock_log_dirs([log_dir]):
        remembered = RememberedLogs([log_dir])
        report = local.run(plan_log_dirs([log_dir], COMPACT, NOW_MS))
        assert report.logs[0].status is LogStatus.SET_ASIDE
        theft()
        remembered.update(report.logs, NOW_MS)
    theft.assert_nothing_followed()


def test_an_undoing(local: LocalRound, partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_dir = str(partition.parent)
    plan = plan_log_dirs([log_dir], COMPACT, NOW_MS)
    local.originals = open_keeper(str(partition.parent.parent / "originals"), "run", NOW_MS, plan)
    local.run(plan)
    local.originals.close()
    theft = Theft(partition.parent)
    before_call(theft, monkeypatch, undo, "judge")
    with lost:
        undo_run(local.originals.path)
    theft.assert_nothing_followed()


def test_the_command_ends_with_1_and_says_what_it_did(
    partition: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not with 3, which says that nothing was changed."""
    (partition / f"{file_name(4, LOG)}{DELETED}").touch()
    other = partition.parent / "prices-0"
    shutil.copytree(partition, other)
    theft = Theft(partition.parent)
    removals: list[str] = []

    def is_second(_: LocalFiles, path: str) -> bool:
        removals.append(path)
        return len(removals) == 2

    before_call(theft, monkeypatch, LocalFiles, "remove", is_second)
    assert cli.main(["recover", str(partition.parent)]) == 1
    theft.assert_nothing_followed()
    assert len(list(partition.parent.glob("*/*.deleted"))) == 1
    told = capsys.readouterr().err
    assert f"compactor: {partition.parent}/.lock: not the file that was locked" in told
    assert "Nothing was changed, except perhaps for what was just being settled" in told
    assert "Traceback" not in told
