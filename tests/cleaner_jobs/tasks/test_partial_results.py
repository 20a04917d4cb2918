"""Partial results, one by one, also where the disk is full in the middle of one."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cleaner_jobs.messages import REWRITE, REWRITTEN, Row
from cleaner_jobs.tasks import task as tasks
from cleaner_jobs.tasks.partial_results import DIRECTORY, PartialResults, PartialResultsFile
from tests.cleaner_jobs.tasks.test_task import Stage

ROWS: list[Row] = [(REWRITTEN, f'[{log_id}, "\\"x"]') for log_id in range(5)]


@contextmanager
def room_for(size_bytes: int) -> Iterator[None]:
    """The kernel takes no more of any file: the write that comes there is a short one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def made(work_dir: Path) -> Path:
    (work_dir / DIRECTORY).mkdir(parents=True)
    return work_dir / DIRECTORY / f"{REWRITE}-0-a"


def test_every_row_is_read_once(tmp_path: Path) -> None:
    made(tmp_path)
    rows = PartialResults(str(tmp_path), REWRITE)
    with PartialResultsFile(str(tmp_path), REWRITE, 0, "a") as file:
        for row in ROWS:
            file.add(row)
            assert list(rows.new()) == [row]
    assert list(rows.new()) == []
    assert list(PartialResults(str(tmp_path), REWRITE, 0).new()) == ROWS


def test_half_a_line_spoils_the_one_behind_it_and_no_other(tmp_path: Path) -> None:
    path = made(tmp_path)
    with PartialResultsFile(str(tmp_path), REWRITE, 0, "a") as file:
        file.add(ROWS[0])
    line_bytes = path.stat().st_size
    path.unlink()
    for taken in range(1, line_bytes):
        rows = PartialResults(str(tmp_path), REWRITE)
        with PartialResultsFile(str(tmp_path), REWRITE, 0, "a") as file:
            file.add(ROWS[0])
            with room_for(line_bytes + taken), pytest.raises(OSError, match="bytes were written"):
                file.add(ROWS[1])
            assert list(rows.new()) == [ROWS[0]]
            file.add(ROWS[2])
            file.add(ROWS[3])
        assert list(rows.new()) == [ROWS[3]]
        path.unlink()


def test_a_full_disk_is_reported_with_the_name_of_the_file(tmp_path: Path) -> None:
    path = made(tmp_path)
    with (
        PartialResultsFile(str(tmp_path), REWRITE, 0, "a") as file,
        room_for(7),
        pytest.raises(OSError, match="7 of") as caught,
    ):
        file.add(ROWS[0])
    error = caught.value
    assert (error.errno, error.filename) == (errno.ENOSPC, str(path))
    line_bytes = len('["rewritten", "[0, \\"\\\\\\"x\\"]"]\n')
    full = os.strerror(errno.ENOSPC)
    assert error.strerror == f"{full}: 7 of {line_bytes} bytes were written"


def test_a_row_that_nobody_could_read_comes_when_its_task_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And who tries the task again does not go by it either."""

    class Spoilt(PartialResultsFile):
        def __enter__(self) -> PartialResultsFile:
            super().__enter__()
            os.write(self._descriptor, b'["rewritten", "[0')
            return self

    stage = Stage(tmp_path)
    task = stage.rewrite_task()
    monkeypatch.setattr(tasks, "PartialResultsFile", Spoilt)
    (first,) = stage.run(REWRITE, ["one"], **task)
    assert [kind for kind, _ in first] == [REWRITTEN]
    assert list(PartialResults(stage.settings.work_dir, REWRITE).new()) == []
    second = stage.run_again(REWRITE, "two")
    assert [values[4].endswith("-two") for _, values in second] == [True]
