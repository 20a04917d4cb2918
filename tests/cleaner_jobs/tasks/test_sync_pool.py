"""Syncs that fail are told by log; nobody is told before all are over."""

import errno
import os
import threading

import pytest

from cleaner_jobs.tasks import sync_pool
from cleaner_jobs.tasks.sync_pool import SyncPool


def test_every_file_is_synced_before_failures_are_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    synced, may_go_on = [], threading.Event()

    def sync(path: str) -> None:
        may_go_on.wait()
        synced.append(path)

    monkeypatch.setattr(sync_pool, "sync_file", sync)
    with SyncPool() as pool:
        pool.start(1, ["a", "b"])
        pool.start(2, ["c"])
        assert synced == []
        may_go_on.set()
        assert pool.failures() == {}
        assert sorted(synced) == ["a", "b", "c"]
        assert pool.failures() == {}


def test_of_each_log_the_first_failure_is_returned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def sync(path: str) -> None:
        if path != "sound":
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(sync_pool, "sync_file", sync)
    with SyncPool() as pool:
        pool.start(1, ["sound"])
        pool.start(2, ["sound", "x", "y"])
        pool.start(3, ["z"])
        failures = pool.failures()
        assert {log_id: error.filename for log_id, error in failures.items()} == {2: "x", 3: "z"}
        assert pool.failures() == {}


def test_what_is_no_error_of_the_disk_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def sync(_: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(sync_pool, "sync_file", sync)
    with SyncPool() as pool:
        pool.start(1, ["a"])
        with pytest.raises(ZeroDivisionError):
            pool.failures()


def test_leaving_waits_for_what_was_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(sync_pool, "sync_file", synced.append)
    with SyncPool() as pool:
        pool.start(1, list("abcdefghijklmnop"))
    assert len(synced) == 16
