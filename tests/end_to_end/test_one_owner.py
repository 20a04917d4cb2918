"""Two runs at once on one log directory: one works, one refuses, the result is as if alone."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from storage.formats import clean_shutdown
from tests.compactor.small_log import build
from tests.end_to_end.test_cli import COMPACTED, assert_refused, summary
from tests.support.command_process import PROJECT, compactor

TOPICS = '{"orders": {"cleanup.policy": "compact"}}'
ROUND = ("--as-of", "5000", "--any-clock", "--master", "local[1]")


def contents(log_dir: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(log_dir)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in log_dir.rglob("*")
        if path.is_file() and path.parent != log_dir
    }


@pytest.mark.spark
def test_of_two_runs_at_once_one_works_and_one_refuses(tmp_path: Path) -> None:
    """The first holds the lock for as long as it waits for its configuration, a pipe."""
    log_dir, alone = build(tmp_path / "log").parent, tmp_path / "alone"
    clean_shutdown.write(str(log_dir))
    shutil.copytree(log_dir, alone)
    topics, pipe = tmp_path / "topics.json", tmp_path / "pipe.json"
    topics.write_text(TOPICS)
    os.mkfifo(pipe)
    words = [sys.executable, "-m", "compactor", "run", str(log_dir), "--topic-configs", str(pipe)]
    with subprocess.Popen(
        [*words, *ROUND], cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as first:
        with open(pipe, "w") as into_first:  # opens when the first run reads it
            second = compactor("run", log_dir, "--topic-configs", topics, *ROUND)
            assert_refused(second, 3, f"{log_dir}/.lock: locked")
            link = tmp_path / "link"
            link.symlink_to(log_dir)
            third = compactor("run", link, "--topic-configs", topics, *ROUND)
            assert_refused(third, 3, f"{link}/.lock: locked")
            dry = compactor("plan", log_dir, "--topic-configs", topics)  # takes no lock
            assert dry.returncode == 0, dry.stderr
            into_first.write(TOPICS)
        out, error = first.communicate(timeout=300)
    assert first.returncode == 0, error
    single = compactor("run", alone, "--topic-configs", topics, *ROUND)
    assert single.returncode == 0, single.stderr
    assert summary(single)["totals"]["logs"]["cleaned"] == 1
    assert contents(log_dir) == contents(alone)
    assert (log_dir / "cleaner-offset-checkpoint").read_bytes() == (
        alone / "cleaner-offset-checkpoint"
    ).read_bytes()
    assert not (log_dir / ".lock").exists()
    assert '"status":"ok"' in out


@pytest.mark.parametrize("place", ["first", "second"])
def test_if_one_of_two_directories_is_held_the_other_is_not_touched(
    tmp_path: Path, place: str
) -> None:
    first, second = (build(tmp_path / name).parent for name in ("first", "second"))
    for log_dir in (first, second):
        clean_shutdown.write(str(log_dir))
    before = contents(tmp_path)
    with open(tmp_path / place / ".lock", "w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        done = compactor("run", first, second, *COMPACTED, *ROUND)
        assert_refused(done, 3, f"{tmp_path / place}/.lock: locked")
    (tmp_path / place / ".lock").unlink()
    assert contents(tmp_path) == before
    assert not (first / ".lock").exists() and not (second / ".lock").exists()
