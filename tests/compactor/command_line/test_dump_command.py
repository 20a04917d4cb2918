"""`dump`: what it shows, and that it stops when its reader does."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.compactor import small_log
from tests.support.local_command import run_command
from tests.support.made_log import keyed, make_partition


def test_only_some_records(tmp_path: Path) -> None:
    partition = small_log.build(tmp_path)
    ended = run_command("dump", partition, "--from-offset", 4, "--to-offset", 9, "--limit", 3)
    assert ended.code == 0
    shown = [line for line in ended.out.splitlines() if line.startswith("  record")]
    assert [line.split()[2] for line in shown] == ["4", "5", "6"]


def test_a_partition_may_be_named_as_every_other_command_has_it(tmp_path: Path) -> None:
    partition = small_log.build(tmp_path)
    ended = run_command("dump", partition.parent, partition.name)
    assert ended == run_command("dump", partition)
    assert ended.code == 0 and "record  offset 4" in ended.out


@pytest.mark.parametrize("form", ["text", "json"])
def test_where_there_is_nothing_it_says_so(tmp_path: Path, form: str) -> None:
    (tmp_path / "empty").mkdir()
    ended = run_command("dump", tmp_path / "empty", "--format", form)
    assert (ended.code, ended.out) == (0, "")
    assert f"{tmp_path}/empty: nothing to show: no file is in this directory" in ended.error
    file = tmp_path / "00000000000000000000.log"
    file.touch()
    assert "nothing to show: the file is empty" in run_command("dump", file).error
    last = max(small_log.build(tmp_path).glob("*.log"))
    out_of_range = run_command("dump", last, "--from-offset", 10**9)
    assert (out_of_range.code, out_of_range.out) == (0, "")
    assert "no record or entry is in the range" in out_of_range.error


def test_it_stops_when_nobody_reads_any_more(tmp_path: Path) -> None:
    batches = [keyed(1000 * i, "a" * 1000) for i in range(40)]  # 2 MB of lines: no pipe holds them
    partition = make_partition(tmp_path, {0: batches})
    command = [sys.executable, "-m", "compactor", "dump", str(partition)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"file  name 00000000000000000000.index\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
