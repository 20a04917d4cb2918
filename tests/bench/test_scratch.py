"""Logs are made once, whole or not at all."""

import io
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.bench.results import BenchError
from tests.bench.scratch import built, fresh_copy, kept, open_scratch, read_through
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


def test_a_copy_is_read_through_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t-0").mkdir()
    for name, size in (("b", 3 << 20), ("a", 0), ("t-0/c", 5)):
        (tmp_path / name).write_bytes(bytes(size))
    read: dict[str, int] = {}

    class Noted(io.FileIO):
        def readinto(self, buffer: Any) -> int | None:
            count = super().readinto(buffer)
            name = str(Path(str(self.name)).relative_to(tmp_path))
            read[name] = read.get(name, 0) + (count or 0)
            return count

    monkeypatch.setattr(Path, "open", lambda path, mode, **_: Noted(path, mode))
    read_through(tmp_path)
    assert list(read.items()) == [("a", 0), ("b", 3 << 20), ("t-0/c", 5)]


def test_two_runs_do_not_share_a_directory(tmp_path: Path) -> None:
    another = pytest.raises(BenchError, match="another benchmark")
    with open_scratch(tmp_path), another, open_scratch(tmp_path):
        pass
