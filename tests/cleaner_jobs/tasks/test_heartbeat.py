"""A task's progress is seen by the driver; of several attempts the furthest counts."""

import os
import socket
import time
from pathlib import Path

import pytest

from cleaner_jobs.tasks import heartbeat
from cleaner_jobs.tasks.heartbeat import Heartbeat, done_bytes, signs_of_life


@pytest.fixture
def work_dir(tmp_path: Path) -> str:
    (tmp_path / "progress").mkdir()
    return str(tmp_path)


def test_what_was_worked_through_adds_up(work_dir: str) -> None:
    assert done_bytes(work_dir, "scan") == 0
    with (
        Heartbeat(work_dir, "scan", 0, "scan-0-7") as one,
        Heartbeat(work_dir, "scan", 1, "a") as two,
    ):
        assert done_bytes(work_dir, "scan") == 0  # the files are there
        one.advance(5)
        two.advance(1 << 40)
        one.advance(6)
        assert done_bytes(work_dir, "scan") == 11 + (1 << 40)
        assert done_bytes(work_dir, "resolve") == 0
    assert done_bytes(work_dir, "scan") == 11 + (1 << 40)


def test_of_several_attempts_the_furthest_counts(work_dir: str) -> None:
    for number in range(8):  # whatever order a directory lists them in
        for attempt in range(8):
            with Heartbeat(work_dir, "rewrite", number, f"rewrite-{number}-{attempt}") as beating:
                beating.advance(100 if attempt == number else attempt)
    assert done_bytes(work_dir, "rewrite") == 800


def test_what_is_half_written_does_not_count(work_dir: str) -> None:
    Path(work_dir, "progress", "scan-0-x").write_bytes(b"\x01\x02\x03")
    assert done_bytes(work_dir, "scan") == 0


def test_a_task_gives_signs_of_life_until_it_ends(
    work_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.01)
    with Heartbeat(work_dir, "scan", 0, "a"):
        (first,) = signs_of_life(work_dir, "scan")
        assert first.who == f"process {os.getpid()} on {socket.gethostname()}"
        deadline = time.monotonic() + 30
        while signs_of_life(work_dir, "scan") == [first]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    (last,) = signs_of_life(work_dir, "scan")
    assert (last.who, last.done_bytes) == ("", 0)
    assert signs_of_life(work_dir, "rewrite") == []
