"""A task's progress is seen by the driver; of several attempts the furthest counts."""

from pathlib import Path

import pytest

from cleaner_jobs.tasks.heartbeat import Heartbeat, done_bytes


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
        assert done_bytes(work_dir, "scan") == 0  # the files are there, and empty
        one.advance(5)
        two.advance(1 << 40)
        one.advance(6)
        assert done_bytes(work_dir, "scan") == 11 + (1 << 40)
        assert done_bytes(work_dir, "resolve") == 0
    assert done_bytes(work_dir, "scan") == 11 + (1 << 40)


def test_of_several_attempts_the_furthest_counts(work_dir: str) -> None:
    for number in range(8):  # whatever order a directory lists them in
        for attempt in range(8):
            with Heartbeat(work_dir, "rewrite", number, f"rewrite-{number}-{attempt}") as heartbeat:
                heartbeat.advance(100 if attempt == number else attempt)
    assert done_bytes(work_dir, "rewrite") == 800


def test_what_is_half_written_does_not_count(work_dir: str) -> None:
    Path(work_dir, "progress", "scan-0-x").write_bytes(b"\x01\x02\x03")
    assert done_bytes(work_dir, "scan") == 0
