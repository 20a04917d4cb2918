"""Who needs what a run has kept holds it, or does not go on; who discards it has it alone."""

import errno
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compactor.errors import RefusedError
from compactor.originals import kept_run, kept_run_lock
from compactor.originals.kept_manifest import DISCARDED_FILE, RUN_FILE, KeptRun
from compactor.originals.originals_keeper import OriginalsKeeper
from storage.files.local import LOCAL
from tests.support.files.watched import Operation, WatchedFiles

RUN = KeptRun("0000aaaa", 0, ())
LOCKER = """
import fcntl, sys
lock = open(sys.argv[1], "rb+")
fcntl.flock(lock, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    OriginalsKeeper(str(tmp_path), RUN).close()
    return tmp_path / RUN.run_id


@contextmanager
def locked_by_another(kept: Path) -> "Iterator[subprocess.Popen[str]]":
    """For as long as its standard input is open."""
    words = [sys.executable, "-c", LOCKER, str(kept / RUN_FILE)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "locked\n"
        yield process


def can_be_locked(kept: Path) -> bool:
    with open(kept / RUN_FILE, "rb+") as manifest:
        try:
            fcntl.flock(manifest, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_who_has_the_lock_for_a_moment_is_waited_for(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with locked_by_another(kept) as other:
        monkeypatch.setattr(time, "sleep", lambda _: other.communicate())
        with kept_run_lock.held(str(kept)):
            assert not can_be_locked(kept)
    assert can_be_locked(kept)


def test_nobody_goes_on_without_the_lock(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_run_lock, "WAIT_SECONDS", 0.0)
    with locked_by_another(kept) as other:
        with pytest.raises(RefusedError, match=r"run\.json: another process keeps it locked"):
            kept_run_lock.hold(str(kept))
        other.communicate()


def test_nor_where_there_are_no_locks(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", without_locks)
    with pytest.raises(RefusedError, match="cannot be locked: No locks available"):
        kept_run_lock.hold(str(kept))
    kept_run.discard(str(kept))  # which nobody can hold
    assert not kept.exists()


def test_a_run_that_does_not_get_the_lock_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> None:
        raise BlockingIOError

    monkeypatch.setattr(kept_run_lock, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(fcntl, "flock", busy)
    with pytest.raises(RefusedError):
        OriginalsKeeper(str(tmp_path), RUN)
    assert os.listdir(tmp_path) == []


def test_what_is_discarded_meanwhile_is_not_taken_for_held(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the opening of the manifest and the lock on it."""
    lock = fcntl.flock

    def after_a_discard(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        kept_run.discard(str(kept))
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", after_a_discard)
    with pytest.raises(RefusedError, match="discarded by another process"):
        kept_run_lock.hold(str(kept))


def test_a_discard_has_the_lock_when_it_begins(kept: Path) -> None:
    """Or a run could get it between a look and the renaming of the manifest."""
    free = []

    def look(operation: Operation) -> None:
        if operation.name == "rename":
            free.append(can_be_locked(kept))

    kept_run.discard(str(kept), WatchedFiles(LOCAL, look))
    assert free == [False]


def test_while_an_undo_is_at_work_nothing_is_discarded(kept: Path) -> None:
    with kept_run_lock.held(str(kept)):
        with pytest.raises(RefusedError, match="an undo of it, is still at work"):
            kept_run.discard(str(kept))
        assert kept_run.discard_expired(str(kept.parent), 1, lambda: None) == []
    assert DISCARDED_FILE not in os.listdir(kept)
