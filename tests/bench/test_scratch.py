"""Logs are made once, whole or not at all."""

import io
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.bench.errors import BenchError
from tests.bench.scratch import fresh_copy, kept, open_scratch, read_through


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
    with (
        open_scratch(tmp_path),
        pytest.raises(BenchError, match="another benchmark"),
        open_scratch(tmp_path),
    ):
        pass
