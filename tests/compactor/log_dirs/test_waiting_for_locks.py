"""Patience with a lock that another process holds: run --wait."""

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compactor.errors import RefusedError
from compactor.log_dirs.locked_log_dirs import Patience, lock_log_dirs
from compactor.reason_codes import ReasonCode
from tests.compactor.log_dirs.test_locked_log_dirs import log_dir
from tests.support.lock_holding import holding


@contextmanager
def held(path: Path) -> "Iterator[subprocess.Popen[str]]":
    """The lock of a log directory, by another process until its input is closed."""
    words = holding(path / ".lock")
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "locked\n"
        yield process
        process.communicate()


def test_the_lock_is_taken_as_soon_as_it_is_free(tmp_path: Path) -> None:
    path, told = log_dir(tmp_path), list[str]()
    with held(path) as holder:
        assert holder.stdin is not None
        threading.Timer(1.0, holder.stdin.close).start()
        began = time.monotonic()
        with lock_log_dirs([str(path)], patience=Patience(60, told.append)):
            assert 0.9 < time.monotonic() - began < 30
        holder.stdin = None
    (line,) = told
    assert line.startswith("Waiting up to 60 s: ") and f"process {holder.pid}" in line


def test_it_is_a_refusal_once_the_time_is_over(tmp_path: Path) -> None:
    path = log_dir(tmp_path)
    with held(path), pytest.raises(RefusedError) as raised:
        began = time.monotonic()
        with lock_log_dirs([str(path)], patience=Patience(1, lambda _: None)):
            raise AssertionError
    assert time.monotonic() - began >= 1
    assert raised.value.reason_code is ReasonCode.LOCK_HELD


def test_who_waits_holds_none_of_several(tmp_path: Path) -> None:
    """Two runs that name their directories the other way round would never end otherwise."""
    first, second = log_dir(tmp_path, "a"), log_dir(tmp_path, "b")
    found = list[str]()

    def look(_: str) -> None:
        words = holding(first / ".lock")
        looked = subprocess.run(words, input="", capture_output=True, text=True, check=True)
        found.append(looked.stdout)

    with held(second), pytest.raises(RefusedError):
        lock_log_dirs([str(first), str(second)], patience=Patience(0.2, look)).__enter__()
    assert found == ["locked\n"]


def test_only_a_held_lock_is_worth_waiting_for(tmp_path: Path) -> None:
    path, told = log_dir(tmp_path), list[str]()
    (path / ".kafka_cleanshutdown").unlink()
    with pytest.raises(RefusedError, match="did not stop cleanly"):
        lock_log_dirs([str(path)], patience=Patience(60, told.append)).__enter__()
    assert not told
