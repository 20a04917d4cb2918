"""Logs are made once, whole or not at all."""

import shutil
from pathlib import Path

import pytest

from tests.bench.results import BenchError
from tests.bench.scratch import built, fresh_copy, kept, open_scratch
from tests.bench.workloads import Workload


def write(log_dir: Path) -> None:
    log_dir.mkdir()
    (log_dir / "file").write_text("written")


def test_a_log_is_made_once(tmp_path: Path) -> None:
    with open_scratch(tmp_path) as scratch:
        made = kept(scratch, "key", write)
        leftover = made.with_name("bench123")  # a copy of a run that was stopped
        write(leftover)
    with open_scratch(tmp_path) as scratch:
        assert kept(scratch, "key", shutil.rmtree) == made
        with fresh_copy(scratch, made) as copy:
            assert (copy / "file").read_text() == "written"
        assert not copy.exists()
    assert (made / "file").read_text() == "written"
    assert not leftover.exists()


def test_a_log_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    def fail(log_dir: Path) -> None:
        write(log_dir)
        raise KeyboardInterrupt

    with open_scratch(tmp_path) as scratch, pytest.raises(KeyboardInterrupt):
        kept(scratch, "key", fail)
    huge = Workload("huge", 10**9, 1000, 1, 1000)
    with open_scratch(tmp_path) as scratch, pytest.raises(BenchError, match="huge needs"):
        built(scratch, huge)
    assert list((tmp_path / "logs").iterdir()) == []


def test_two_runs_do_not_share_a_directory(tmp_path: Path) -> None:
    another = pytest.raises(BenchError, match="another benchmark")
    with open_scratch(tmp_path), another, open_scratch(tmp_path):
        pass
