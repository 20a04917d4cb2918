"""Logs are made once, whole or not at all."""

import shutil
from pathlib import Path

import pytest

from tests.bench.errors import BenchError
from tests.bench.scratch import fresh_copy, kept, open_scratch


def write(log_dir: Path) -> None:
    log_dir.mkdir()
    (log_dir / "file").write_text("written")


def test_a_log_is_made_once(tmp_path: Path) -> None:
    with open_scratch(tmp_path) as scratch:
        made = kept(scratch, "key", write)
    with open_scratch(tmp_path) as scratch:
        assert kept(scratch, "key", shutil.rmtree) == made
    assert (made / "file").read_text() == "written"


def test_a_log_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    def fail(log_dir: Path) -> None:
        write(log_dir)
        raise KeyboardInterrupt

    with open_scratch(tmp_path) as scratch, pytest.raises(KeyboardInterrupt):
        kept(scratch, "key", fail)
    assert [path for path in tmp_path.rglob("*") if path.name == "file"] == []


def test_copies_that_a_stopped_run_left_go(tmp_path: Path) -> None:
    with open_scratch(tmp_path) as scratch:
        log_dir = kept(scratch, "key", write)
        leftover = log_dir.with_name("bench123")
        write(leftover)
        assert kept(scratch, "key", write) == log_dir
    assert not leftover.exists()


def test_a_copy_is_there_while_it_is_used(tmp_path: Path) -> None:
    with open_scratch(tmp_path) as scratch:
        with fresh_copy(scratch, kept(scratch, "key", write)) as copy:
            assert (copy / "file").read_text() == "written"
        assert not copy.exists()


def test_two_runs_do_not_share_a_directory(tmp_path: Path) -> None:
    with (
        open_scratch(tmp_path),
        pytest.raises(BenchError, match="another benchmark"),
        open_scratch(tmp_path),
    ):
        pass
