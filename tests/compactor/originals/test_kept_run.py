"""What runs have kept is found again in order, and only what a run has kept is ever removed."""

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
from compactor.log_dirs.kept_files import FileMark
from compactor.originals import kept_run
from compactor.originals.kept_manifest import (
    DISCARDED_FILE,
    RUN_FILE,
    KeptRun,
    KeptStep,
    LogBefore,
    document,
)
from compactor.originals.kept_run import discard, discard_expired, held, read_logs, read_run
from compactor.originals.originals_keeper import OriginalsKeeper
from storage.errors import CorruptFileError
from storage.files.local import LOCAL
from tests.support.files.watched import Operation, WatchedDisk

NOW_MS = 1_700_000_000_000
LOG = FileMark(f"{0:020d}.log", 3, "0" * 16)
BEFORE = LogBefore(None, (LOG,), 9, None, None)


def keep(root: Path, run_id: str = "cafe0001", started_at_ms: int = NOW_MS) -> KeptRun:
    run = KeptRun(run_id, started_at_ms, ("/disk1", "/disk2"))
    (root / run_id).mkdir(parents=True)
    (root / run_id / "run.json").write_bytes(document(run))
    return run


def keep_log(path: Path, *numbers: int) -> None:
    path.mkdir(parents=True)
    (path / "log.json").write_bytes(document(BEFORE))
    for number in numbers:
        (path / f"{number:06d}.json").write_bytes(document(step(number)))
        (path / f"{number:06d}").mkdir()


def step(number: int) -> KeptStep:
    return KeptStep(number, originals=(LOG,), put=(), cleaned_to=9)


def test_logs_are_found_by_directory_and_name_with_their_steps_in_order(tmp_path: Path) -> None:
    run = keep(tmp_path)
    kept = tmp_path / "cafe0001"
    keep_log(kept / "1" / "a-0", 0)
    keep_log(kept / "0" / "z-1", 0, 1)
    keep_log(kept / "0" / "b-0")
    (kept / "0" / "no partition").mkdir()
    (kept / "0" / "c-0").write_bytes(b"no directory")
    (kept / "0" / "z-1" / "000002").mkdir()  # a crash came before its manifest
    found = read_logs(str(kept), run)
    assert [(log.log_dir, log.key) for log in found] == [
        ("/disk1", ("b", 0)),
        ("/disk1", ("z", 1)),
        ("/disk2", ("a", 0)),
    ]
    assert [log.steps for log in found] == [(), (step(0), step(1)), (step(0),)]
    assert {log.before for log in found} == {BEFORE}
    assert found[1].file(step(1), LOG.name) == str(kept / "0" / "z-1" / "000001" / LOG.name)


def test_a_log_of_which_no_step_was_begun_has_no_state(tmp_path: Path) -> None:
    run = keep(tmp_path)
    (tmp_path / "cafe0001" / "0" / "a-0").mkdir(parents=True)
    [log] = read_logs(str(tmp_path / "cafe0001"), run)
    assert (log.before, log.steps) == (None, ())


@pytest.mark.parametrize(("numbers", "problem"), [((1,), "step 1, exp"), ((0, 2), "step 2, exp")])
def test_a_step_that_is_missing_is_an_error(
    tmp_path: Path, numbers: tuple[int, ...], problem: str
) -> None:
    run = keep(tmp_path)
    keep_log(tmp_path / "cafe0001" / "0" / "a-0", *numbers)
    with pytest.raises(CorruptFileError, match=problem):
        read_logs(str(tmp_path / "cafe0001"), run)


def test_a_step_under_the_name_of_another_is_an_error(tmp_path: Path) -> None:
    run = keep(tmp_path)
    keep_log(tmp_path / "cafe0001" / "0" / "a-0", 0)
    (tmp_path / "cafe0001" / "0" / "a-0" / "000000.json").write_bytes(document(step(1)))
    with pytest.raises(CorruptFileError, match="step 1, expected 0"):
        read_logs(str(tmp_path / "cafe0001"), run)


def test_what_is_discarded_goes_and_nothing_else(tmp_path: Path) -> None:
    keep(tmp_path)
    keep(tmp_path, "cafe0002")
    keep_log(tmp_path / "cafe0001" / "0" / "a-0", 0)
    discard(str(tmp_path / "cafe0001"))
    assert os.listdir(tmp_path) == ["cafe0002"]


def test_a_discard_that_was_cut_short_is_gone_on_with(tmp_path: Path) -> None:
    """From the first step on the run is no longer one that could be undone."""
    keep(tmp_path)
    keep_log(tmp_path / "cafe0001" / "1" / "a-0", 0)
    path = tmp_path / "cafe0001"
    (path / "run.json").rename(path / "discarded.json")
    with pytest.raises(FileNotFoundError):
        read_run(str(path))
    discard(str(path))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("manifest", [None, b"{}", b'{"format": "compactor-originals-log"}'])
def test_a_directory_that_no_run_has_kept_is_not_discarded(
    tmp_path: Path, manifest: bytes | None
) -> None:
    path = tmp_path / "cafe0001"
    keep_log(path / "0" / "a-0", 0)
    if manifest is not None:
        (path / "run.json").write_bytes(manifest)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises((FileNotFoundError, CorruptFileError)):
        discard(str(path))
    assert sorted(tmp_path.rglob("*")) == before


def test_another_file_in_a_run_stops_the_discard_at_its_end(tmp_path: Path) -> None:
    """What is not the run's is not removed with it."""
    keep(tmp_path)
    (tmp_path / "cafe0001" / "notes.txt").write_bytes(b"mine")
    with pytest.raises(OSError, match="not empty"):
        discard(str(tmp_path / "cafe0001"))
    assert (tmp_path / "cafe0001" / "notes.txt").read_bytes() == b"mine"


def test_only_runs_that_began_before_the_time_expire(tmp_path: Path) -> None:
    keep(tmp_path, "cafe0001", NOW_MS - 1)
    keep(tmp_path, "cafe0002", NOW_MS)
    keep(tmp_path, "cafe0003", NOW_MS - 1)
    keep(tmp_path, "backup", NOW_MS - 1)
    keep(tmp_path, "cafe", NOW_MS - 1)  # too short for an id of a run
    (tmp_path / "cafe0004").mkdir()
    (tmp_path / "cafe0005").write_bytes(b"no directory")
    (tmp_path / "cafe0007").symlink_to(tmp_path / "backup")
    keep(tmp_path, "cafe0006", NOW_MS + 1)
    path = tmp_path / "cafe0006"
    (path / "run.json").rename(path / "discarded.json")  # a discard that was cut short
    calls: list[list[str]] = []
    with held(str(tmp_path / "cafe0003")):  # its run is at work
        expired = discard_expired(
            str(tmp_path), NOW_MS, lambda: calls.append(sorted(os.listdir(tmp_path)))
        )
    assert expired == [str(tmp_path / "cafe0001"), str(path)]
    left = ["backup", "cafe", "cafe0002", "cafe0003", "cafe0004", "cafe0005", "cafe0007"]
    assert sorted(os.listdir(tmp_path)) == left
    assert [("cafe0001" in names, "cafe0006" in names) for names in calls] == [
        (True, True),
        (False, True),
    ]
    (tmp_path / "cafe0004" / "run.json").write_text("damaged")
    with pytest.raises(CorruptFileError):
        discard_expired(str(tmp_path), NOW_MS, lambda: None)


def test_nothing_expires_in_a_directory_that_is_not_there(tmp_path: Path) -> None:
    assert discard_expired(str(tmp_path / "none"), NOW_MS, lambda: None) == []


def test_nothing_is_removed_if_what_comes_before_fails(tmp_path: Path) -> None:
    keep(tmp_path, started_at_ms=1)

    def fail() -> None:
        raise RuntimeError("the lock was lost")

    with pytest.raises(RuntimeError):
        discard_expired(str(tmp_path), NOW_MS, fail)
    assert (tmp_path / "cafe0001" / "run.json").exists()


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
        with held(str(kept)):
            assert not can_be_locked(kept)
    assert can_be_locked(kept)


def test_nobody_goes_on_without_the_lock(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_run, "WAIT_SECONDS", 0.0)
    with locked_by_another(kept) as other:
        with pytest.raises(RefusedError, match=r"run\.json: another process keeps it locked"):
            held(str(kept)).__enter__()
        other.communicate()


def test_nor_where_there_are_no_locks(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", without_locks)
    with pytest.raises(RefusedError, match="cannot be locked: No locks available"):
        held(str(kept)).__enter__()
    discard(str(kept))  # which nobody can hold
    assert not kept.exists()


def test_a_run_that_does_not_get_the_lock_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> None:
        raise BlockingIOError

    monkeypatch.setattr(kept_run, "WAIT_SECONDS", 0.0)
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
        discard(str(kept))
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", after_a_discard)
    with pytest.raises(RefusedError, match="discarded by another process"):
        held(str(kept)).__enter__()


def test_a_discard_has_the_lock_when_it_begins(kept: Path) -> None:
    """Or a run could get it between a look and the renaming of the manifest."""
    free = []

    def look(operation: Operation) -> None:
        if operation.name == "rename":
            free.append(can_be_locked(kept))

    discard(str(kept), WatchedDisk(LOCAL, look))
    assert free == [False]


def test_while_an_undo_is_at_work_nothing_is_discarded(kept: Path) -> None:
    with held(str(kept)):
        with pytest.raises(RefusedError, match="an undo of it, is still at work"):
            discard(str(kept))
        assert discard_expired(str(kept.parent), 1, lambda: None) == []
    assert DISCARDED_FILE not in os.listdir(kept)
