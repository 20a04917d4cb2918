"""`compactor recover`, and a run that settles what was cut short before it plans."""

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest

from storage.file_names import LOG, TIME_INDEX, file_name
from storage.formats import clean_shutdown
from tests.end_to_end.test_cli import COMPACTED, assert_refused, summary
from tests.support.command_process import compactor
from tests.support.file_states import state_of

STAGED = ".compactor-0a1b2c3d-7"
NOT_COMPACTED = ("--set", "cleanup.policy=delete")  # a round without Spark
UNTIL = "until a broker has started and stopped cleanly there"
UNDONE = [file_name(0, TIME_INDEX) + ".cleaned", file_name(0, LOG) + ".swap"]


@pytest.fixture
def cut_short(log_dir: Path) -> Path:
    """An incomplete swap, and a staged file of a run that is gone."""
    for name in (*UNDONE, file_name(15, LOG) + STAGED):
        (log_dir / "orders-0" / name).write_bytes(b"x")
    return log_dir


def told(stdout: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stdout.splitlines()[-1])
    return found


def test_it_settles_and_says_so_and_finds_nothing_the_second_time(cut_short: Path) -> None:
    settled = {p: f for p, f in state_of(cut_short).items() if f[0] != b"x"}
    done = compactor("recover", cut_short)
    assert (done.returncode, done.stderr) == (0, "")
    assert "orders-0" in done.stdout
    assert "2 files of an incomplete one removed, 1 file left over removed" in done.stdout
    assert "1 partition: 1 settled, nothing to be done for the others." in done.stdout
    last = summary(done)
    assert (last["command"], last["status"]) == ("recover", "ok")
    assert last["totals"] == {
        "partitions": 1,
        "recovered": 1,
        "set_aside": 0,
        "finished": 0,
        "undone": 2,
        "removed": 1,
        "rebuilt": 0,
        "truncated": 0,
    }
    assert state_of(cut_short) == settled
    again = told(compactor("recover", cut_short, "--format", "json").stdout)
    assert (again["logs"], again["totals"]["recovered"]) == ([], 0)
    assert state_of(cut_short) == settled


def test_what_cannot_be_settled_is_left_and_reported(cut_short: Path, tmp_path: Path) -> None:
    (cut_short / "orders-0" / UNDONE[0]).unlink()
    before = state_of(cut_short)
    done = compactor("recover", cut_short, "--report", tmp_path / "r.json")
    assert done.returncode == 4
    assert "set aside:" in done.stdout
    assert summary(done)["totals"]["set_aside"] == 1
    [log] = json.loads((tmp_path / "r.json").read_text())["logs"]
    swap = cut_short / "orders-0" / UNDONE[1]
    assert log["problem"].startswith(f"{swap}, byte 0: ")
    assert state_of(cut_short) == before
    ran = told(compactor("run", cut_short, *NOT_COMPACTED, "--format", "json").stdout)
    assert ran["logs"][0]["notes"] == []
    assert state_of(cut_short) == before


def test_it_refuses_beside_a_broker(cut_short: Path) -> None:
    """F-15.1."""
    before = state_of(cut_short / "orders-0")
    with open(cut_short / ".lock", "w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        assert_refused(compactor("recover", cut_short), 3, ".lock: locked")
    assert state_of(cut_short / "orders-0") == before


class TestAfterAnUncleanShutdown:
    @pytest.fixture
    def killed(self, log_dir: Path) -> Path:
        """A torn end, and nothing that is known to be on disk."""
        (log_dir / clean_shutdown.CLEAN_SHUTDOWN).unlink()
        (log_dir / "recovery-point-offset-checkpoint").write_bytes(b"")
        with open(log_dir / "orders-0" / file_name(15, LOG), "ab") as log:
            log.write(b"torn")
        return log_dir

    def test_a_run_refuses(self, killed: Path) -> None:
        before = state_of(killed)
        done = compactor("run", killed, *NOT_COMPACTED)
        assert_refused(done, 3, "did not stop cleanly", "Give each run --recover-first", UNTIL)
        assert state_of(killed) == before

    def test_after_recover_both_say_which_run_is_not_refused(self, killed: Path) -> None:
        done = compactor("recover", killed)
        lines = " ".join(done.stdout.split())
        said = f"no {clean_shutdown.CLEAN_SHUTDOWN}, and recover writes none: each run here needs"
        assert f"{killed}: {said} --recover-first {UNTIL}." in lines
        [notice] = told(compactor("recover", killed, "--format", "json").stdout)["notices"]
        assert f"--recover-first {UNTIL}" in notice
        refused = compactor("run", killed, *NOT_COMPACTED)
        assert_refused(refused, 3, "Give each run --recover-first", UNTIL)
        assert compactor("run", killed, *NOT_COMPACTED, "--recover-first").returncode == 0
        clean_shutdown.write(str(killed))  # as a broker that stops
        assert told(compactor("recover", killed, "--format", "json").stdout)["notices"] == []
        assert compactor("run", killed, *NOT_COMPACTED).returncode == 0

    def test_recover_cuts_the_torn_end_off(self, killed: Path) -> None:
        done = compactor("recover", killed)
        assert (done.returncode, summary(done)["totals"]["truncated"]) == (0, 1)
        assert "bytes, 4 torn bytes" in done.stdout
        assert not (killed / clean_shutdown.CLEAN_SHUTDOWN).exists()
        assert compactor("verify", killed).returncode == 0
        recovered = state_of(killed)
        assert summary(compactor("recover", killed))["totals"]["recovered"] == 0
        assert state_of(killed) == recovered

    def test_a_run_does_so_first(self, killed: Path) -> None:
        words = ("run", killed, "--recover-first", *NOT_COMPACTED, "--format", "json")
        [log] = told(compactor(*words).stdout)["logs"]
        assert "cut off: 00000000000000000015.log from" in log["notes"][0]
        assert compactor("verify", killed).returncode == 0

    def test_a_run_leaves_a_log_with_damage_in_its_middle(self, killed: Path) -> None:
        path = killed / "orders-0" / file_name(0, LOG)
        data = path.read_bytes()
        path.write_bytes(data[:100] + b"?" + data[101:])
        before = state_of(killed / "orders-0")
        compacted = (*COMPACTED, "--as-of", "5000", "--any-clock")
        done = compactor("run", killed, "--recover-first", *compacted, "--format", "json")
        assert done.returncode == 4
        [log] = told(done.stdout)["logs"]
        assert log["status"] == "set-aside"
        assert log["reason"].startswith(f"{path}, byte 0: ")
        assert state_of(killed / "orders-0") == before


def test_a_run_settles_first_and_notes_it(cut_short: Path) -> None:
    settled = {p: f for p, f in state_of(cut_short).items() if f[0] != b"x"}
    [log] = told(compactor("run", cut_short, *NOT_COMPACTED, "--format", "json").stdout)["logs"]
    note = "recovered first: 2 files of an incomplete one removed, 1 file left over removed"
    assert log["notes"] == [note]
    assert state_of(cut_short) == settled


def test_what_only_reads_settles_nothing(cut_short: Path) -> None:
    before = state_of(cut_short)
    said = "left by a cleaning that was cut short; the next run settles it first"
    for words in (["plan", cut_short], ["run", cut_short, "--dry-run"]):
        done = compactor(*words, *COMPACTED, "--format", "json")
        assert done.returncode == 4
        assert said in done.stdout
    explained = compactor("explain", cut_short, "orders-0", *COMPACTED[2:]).stdout
    assert said in " ".join(explained.split())
    assert state_of(cut_short) == before
