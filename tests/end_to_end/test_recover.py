"""`compactor recover`, and a run that settles what was cut short before it plans."""

import json
from pathlib import Path
from typing import Any

import pytest

from storage.file_names import LOG, TIME_INDEX, file_name
from storage.formats import clean_shutdown
from tests.compactor.log_dirs.test_locked_log_dirs import other_process
from tests.support.file_states import state_of
from tests.support.local_command import run_command

STAGED = ".compactor-0a1b2c3d-7"
COMPACTED = ("--include", "orders", "--set", "cleanup.policy=compact")
NOT_COMPACTED = ("--set", "cleanup.policy=delete")  # a round without tasks
UNTIL = "until a broker has started and stopped cleanly there"
UNDONE = [file_name(0, TIME_INDEX) + ".cleaned", file_name(0, LOG) + ".swap"]
NOTHING = dict.fromkeys(("recovered", "set_aside", "finished", "removed", "rebuilt"), 0)


@pytest.fixture
def cut_short(log_dir: Path) -> Path:
    """An incomplete swap, and a staged file of a run that is gone."""
    for name in (*UNDONE, file_name(15, LOG) + STAGED):
        (log_dir / "orders-0" / name).write_bytes(b"x")
    return log_dir


def document(*words: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run_command(*words, "--format", "json").out)
    return found


def test_it_settles_and_says_so_and_finds_nothing_the_second_time(cut_short: Path) -> None:
    settled = {p: f for p, f in state_of(cut_short).items() if f[0] != b"x"}
    done = run_command("recover", cut_short)
    assert (done.code, done.error) == (0, "")
    assert "orders-0" in done.out
    assert "2 files of an incomplete one removed, 1 file left over removed" in done.out
    assert "1 partition: 1 settled, nothing to be done for the others." in done.out
    assert (done.summary["command"], done.summary["status"]) == ("recover", "ok")
    counts = {"partitions": 1, "recovered": 1, "undone": 2, "removed": 1, "truncated": 0}
    assert done.summary["totals"] == NOTHING | counts
    assert state_of(cut_short) == settled
    again = document("recover", cut_short)
    assert (again["logs"], again["totals"]["recovered"]) == ([], 0)
    assert state_of(cut_short) == settled


def test_what_cannot_be_settled_is_left_and_reported(cut_short: Path, tmp_path: Path) -> None:
    (cut_short / "orders-0" / UNDONE[0]).unlink()
    before = state_of(cut_short)
    done = run_command("recover", cut_short, "--report", tmp_path / "r.json")
    assert (done.code, done.summary["totals"]["set_aside"]) == (4, 1)
    assert "set aside:" in done.out
    [log] = json.loads((tmp_path / "r.json").read_text())["logs"]
    swap = cut_short / "orders-0" / UNDONE[1]
    assert log["problem"].startswith(f"{swap}, byte 0: ")
    assert state_of(cut_short) == before
    assert document("run", cut_short, *NOT_COMPACTED)["logs"][0]["notes"] == []
    assert state_of(cut_short) == before


def test_it_refuses_beside_a_broker(cut_short: Path) -> None:
    """F-15.1."""
    before = state_of(cut_short / "orders-0")
    with other_process(cut_short / ".lock"):
        done = run_command("recover", cut_short)
    assert (done.code, ".lock: locked" in done.error) == (3, True)
    assert state_of(cut_short / "orders-0") == before


@pytest.fixture
def killed(log_dir: Path) -> Path:
    """A torn end, and nothing that is known to be on disk."""
    (log_dir / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    (log_dir / "recovery-point-offset-checkpoint").write_bytes(b"")
    with open(log_dir / "orders-0" / file_name(15, LOG), "ab") as log:
        log.write(b"torn")
    return log_dir


def test_recover_cuts_a_torn_end_off_and_says_which_run_is_not_refused(killed: Path) -> None:
    done = run_command("recover", killed)
    assert (done.code, done.summary["totals"]["truncated"]) == (0, 1)
    assert "bytes, 4 torn bytes" in done.out
    said = f"no {clean_shutdown.CLEAN_SHUTDOWN}, and recover writes none: each run here needs"
    assert f"{killed}: {said} --recover-first {UNTIL}." in " ".join(done.out.split())
    assert not (killed / clean_shutdown.CLEAN_SHUTDOWN).exists()
    assert run_command("verify", killed).code == 0
    again = document("recover", killed)
    assert again["totals"]["recovered"] == 0
    assert f"--recover-first {UNTIL}" in again["notices"][0]
    refused = run_command("run", killed, *NOT_COMPACTED)
    assert (refused.code, f"Give each run --recover-first {UNTIL}" in refused.error) == (3, True)
    assert run_command("run", killed, *NOT_COMPACTED, "--recover-first").code == 0
    clean_shutdown.write(str(killed))  # as a broker that stops
    assert document("recover", killed)["notices"] == []
    assert run_command("run", killed, *NOT_COMPACTED).code == 0


def test_a_run_recovers_first_and_notes_it(killed: Path) -> None:
    [log] = document("run", killed, "--recover-first", *NOT_COMPACTED)["logs"]
    assert "cut off: 00000000000000000015.log from" in log["notes"][0]
    assert run_command("verify", killed).code == 0


def test_a_run_settles_first_and_notes_it(cut_short: Path) -> None:
    settled = {p: f for p, f in state_of(cut_short).items() if f[0] != b"x"}
    [log] = document("run", cut_short, *NOT_COMPACTED)["logs"]
    note = "recovered first: 2 files of an incomplete one removed, 1 file left over removed"
    assert log["notes"] == [note]
    assert state_of(cut_short) == settled


def test_what_only_reads_settles_nothing(cut_short: Path) -> None:
    before = state_of(cut_short)
    for words in (
        ["plan", cut_short, *COMPACTED],
        ["run", cut_short, "--dry-run", *COMPACTED],
        ["explain", cut_short, "orders-0", *COMPACTED[2:]],
    ):
        done = run_command(*words)
        assert done.code == 4
        said = "left by a cleaning that was cut short; the next run settles it first"
        assert said in " ".join(done.out.split())
    assert state_of(cut_short) == before
