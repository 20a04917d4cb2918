"""`plan` says why a run would be refused, in the words of the run; no lock is taken for it."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from compactor.command_line import cli
from compactor.host import machine
from compactor.log_dirs.locked_log_dirs import lock_log_dirs, require_free
from storage.files.files import Mount
from storage.files.local import LocalFiles
from storage.formats import clean_shutdown
from storage.formats.checkpoint import REPLICATION
from tests.compactor.log_dirs.test_locked_log_dirs import other_process
from tests.support.file_states import state_of
from tests.support.local_command import run_command, use_local_rounds

NOT_COMPACTED = ("--set", "cleanup.policy=delete")  # a round without Spark


def plan(capsys: pytest.CaptureFixture[str], log_dir: Path, *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert cli.main(["plan", str(log_dir), *NOT_COMPACTED, *words, "--format", "json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def refusal_of_run(capsys: pytest.CaptureFixture[str], log_dir: Path) -> str:
    capsys.readouterr()
    assert cli.main(["run", str(log_dir), *NOT_COMPACTED]) == 3
    line = capsys.readouterr().err.splitlines()[-1]
    return line.removeprefix("compactor: ").removesuffix(". Nothing was changed.")


@contextmanager
def locked(log_dir: Path, _: pytest.MonkeyPatch) -> Iterator[None]:
    with other_process(log_dir / ".lock"):
        yield


@contextmanager
def not_shut_down_cleanly(log_dir: Path, _: pytest.MonkeyPatch) -> Iterator[None]:
    (log_dir / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    yield


@contextmanager
def on_a_network(_: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    mount = Mount("/", "nfs4", frozenset())
    monkeypatch.setattr(LocalFiles, "mount_of", staticmethod(lambda _: mount))
    yield


@contextmanager
def without_high_watermarks(log_dir: Path, _: pytest.MonkeyPatch) -> Iterator[None]:
    (log_dir / REPLICATION).unlink()
    yield


@contextmanager
def with_few_descriptors(_: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(machine, "open_file_limit", lambda: 256)
    yield


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (locked, ".lock: locked: a broker or another run works in this log directory"),
        (not_shut_down_cleanly, "Give each run --recover-first"),
        (on_a_network, "--allow-file-system nfs4"),
        (without_high_watermarks, "say so with --assume-fully-replicated"),
        (with_few_descriptors, "no more than 256 files may be open at once"),
    ],
)
def test_plan_says_what_a_run_says(
    log_dir: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    state: Any,
    words: str,
) -> None:
    assert plan(capsys, log_dir)["refusals"] == []
    before = state_of(log_dir / "orders-0")
    in_state: AbstractContextManager[None] = state(log_dir, monkeypatch)
    with in_state:
        [told] = plan(capsys, log_dir)["refusals"]
        assert told == refusal_of_run(capsys, log_dir)
        assert words in told
        assert cli.main(["plan", str(log_dir), *NOT_COMPACTED]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert f"A run would be refused: {told}" in shown
    assert state_of(log_dir / "orders-0") == before


def test_all_refusals_are_listed(
    log_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each directory; but that a running broker has not shut down is no news."""
    with locked(log_dir, monkeypatch), on_a_network(log_dir, monkeypatch):
        (log_dir / clean_shutdown.CLEAN_SHUTDOWN).unlink()
        first, second = plan(capsys, log_dir)["refusals"]
    assert "nfs4" in first and "locked" in second


def test_no_lock_is_taken_and_none_is_left(
    log_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that starts just then would fail. To let go of what nobody holds keeps no one out,
    nor does a lock on a file that is not `.lock`."""
    lockf = fcntl.lockf

    def taken(descriptor: int, operation: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if path.endswith("/.lock") and operation != fcntl.LOCK_UN:
            pytest.fail("a lock was taken")
        lockf(descriptor, operation)

    monkeypatch.setattr(fcntl, "lockf", taken)
    monkeypatch.setattr(fcntl, "flock", taken)
    for exists in (False, True):
        assert plan(capsys, log_dir)["refusals"] == []
        assert (log_dir / ".lock").exists() is exists
        (log_dir / ".lock").touch()


def test_to_look_at_a_lock_of_our_own_does_not_give_it_away(log_dir: Path) -> None:
    with lock_log_dirs([str(log_dir)]):
        require_free(str(log_dir))
        with other_process(log_dir / ".lock") as said:
            assert said == "refused"


def test_a_lock_that_is_a_pipe_is_not_waited_for(log_dir: Path) -> None:
    os.mkfifo(log_dir / ".lock")
    require_free(str(log_dir))


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("link", "Too many levels of symbolic links"),
        ("link to nowhere", "Too many levels of symbolic links"),
        ("directory", "Is a directory"),
    ],
)
def test_a_lock_that_is_no_file_is_refused_in_the_words_of_a_run(
    log_dir: Path, capsys: pytest.CaptureFixture[str], kind: str, problem: str
) -> None:
    if kind == "directory":
        (log_dir / ".lock").mkdir()
    else:
        (log_dir / ".lock").symlink_to("elsewhere")
    if kind == "link":
        (log_dir / "elsewhere").touch()
    [told] = plan(capsys, log_dir)["refusals"]
    assert f"{log_dir}/.lock: cannot be locked, and nothing else keeps a broker out: " in told
    assert problem in told
    assert told == refusal_of_run(capsys, log_dir)


def test_a_dry_run_says_so_too_by_its_own_options(
    log_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(*words: str) -> list[str]:
        capsys.readouterr()
        dry_run = ["run", str(log_dir), "--dry-run", *NOT_COMPACTED, "--format", "json"]
        assert cli.main([*dry_run, *words]) == 0
        notices: list[str] = json.loads(capsys.readouterr().out)["notices"]
        return [line for line in notices if line.startswith("A run would be refused: ")]

    assert told() == []
    with on_a_network(log_dir, monkeypatch), not_shut_down_cleanly(log_dir, monkeypatch):
        assert len(told()) == 2
        assert told("--recover-first", "--allow-file-system", "nfs4") == []


def test_a_dry_run_says_what_room_and_permission_a_run_would_want(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_local_rounds(monkeypatch, tmp_path / "work")
    words = [log_dir, "--include", "orders", "--set", "cleanup.policy=compact", "--format", "json"]

    def told() -> list[str]:
        ended = run_command("run", *words, "--dry-run", "--work-dir", tmp_path)
        assert ended.code == 0, ended.error
        notices: list[str] = json.loads(ended.out.splitlines()[-1])["notices"]
        return [line for line in notices if line.startswith("A run would ")]

    assert told() == []
    found = os.statvfs(log_dir)
    full = os.statvfs_result((*found[:4], 0, *found[5:], found.f_fsid))
    with monkeypatch.context() as patch:
        patch.setattr(os, "statvfs", lambda _: full)
        (refused,) = told()
        ended = run_command("run", *words)
    assert ended.code == 3
    assert ended.error.splitlines()[-1] == (
        f"compactor: {refused.removeprefix('A run would be refused: ')}. Nothing was changed."
    )
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: path != str(log_dir) or not mode & os.W_OK)
        assert told()[0] == (
            f"A run would be refused: LOG_DIR {log_dir}: no permission to write; --dry-run and "
            "plan only read"
        )


def test_a_run_that_is_refused_after_it_has_settled_something_says_so(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What a killed broker has left beside a checkpoint goes before the room is looked at."""
    use_local_rounds(monkeypatch, tmp_path / "work")
    left = log_dir / "recovery-point-offset-checkpoint.tmp"
    left.touch()
    found = os.statvfs(log_dir)
    full = os.statvfs_result((*found[:4], 0, *found[5:], found.f_fsid))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    words = ["--include", "orders", "--set", "cleanup.policy=compact", "--format", "json"]
    ended = run_command("run", log_dir, *words)
    assert (ended.code, ended.summary["changed"], left.exists()) == (3, True, False)
    assert "except for what was settled" in ended.error
