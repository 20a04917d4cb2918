"""A run has one "now": read once, for its recovery, its plans, what it keeps and what it reports.

The machine's clock goes on by an hour whenever it is asked. The log has a segment that is split
first (the golden one of `tests/compactor/cleaning/test_overflow.py`), so that it is planned anew.
"""

import itertools
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from compactor.log_dirs.set_aside_memory import SET_ASIDE
from compactor.originals.kept_manifest import RUN_FILE
from compactor.planning.round_plan import RoundPlan
from compactor.recovery.log_recovery import LogsToRecover
from storage.file_names import LOG, file_name
from storage.formats import clean_shutdown
from tests.compactor.cleaning.test_overflow import ACTIVE, ACTIVE_BASE, FAR, NEAR
from tests.support.local_command import run_command, use_local_rounds
from tests.support.made_log import make_partition

HOUR_MS = 3_600_000
SETTINGS = ("--set", "min.cleanable.dirty.ratio=0", "--set", "cleanup.policy=compact")
RUN = ("--include", ".*", *SETTINGS, "--assume-fully-replicated", "--format", "json")


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A log to be split, one that is damaged, and one whose last segment is torn."""
    split = make_partition(tmp_path / "logs", {0: [NEAR], ACTIVE_BASE: [ACTIVE]}, "split-0")
    (split / file_name(0, LOG)).write_bytes(NEAR + FAR)
    bad = make_partition(tmp_path / "logs", {0: [NEAR], 100: [NEAR]}, "bad-0")
    (bad / file_name(0, LOG)).write_bytes(NEAR[:-1] + b"\xff")
    torn = make_partition(tmp_path / "logs", {0: [NEAR], 100: [NEAR]}, "torn-0")
    (torn / file_name(100, LOG)).write_bytes(b"\0" * 7)
    for path in tmp_path.glob("logs/*/*.snapshot"):
        path.unlink()
    clean_shutdown.write(str(tmp_path / "logs"))
    return tmp_path / "logs"


@pytest.fixture
def began_ms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """An hour ago; what is written now has the time that a second look finds."""
    use_local_rounds(monkeypatch, tmp_path / "work")
    began_ms = time.time_ns() // 1_000_000 - HOUR_MS
    times = itertools.count(began_ms * 1_000_000, HOUR_MS * 1_000_000)
    monkeypatch.setattr(time, "time_ns", lambda: next(times))
    return began_ms


def seen(monkeypatch: pytest.MonkeyPatch, kind: type, name: str) -> set[int]:
    """What the values of a kind are made with from now on, of one name."""
    found, made = set(), kind.__init__  # type: ignore[misc]

    def make(self: Any, *args: Any, **named: Any) -> None:
        made(self, *args, **named)
        names = made.__code__.co_varnames[1:]
        found.add({**dict(zip(names, args, strict=False)), **named}[name])

    monkeypatch.setattr(kind, "__init__", make)
    return found


def test_a_run_has_one_now(
    log_dir: Path, tmp_path: Path, began_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned, kept = seen(monkeypatch, RoundPlan, "as_of_ms"), tmp_path / "kept"
    ended = run_command("run", log_dir, *RUN, "--keep-originals", kept, "--keep-for", "1d")
    report = json.loads(ended.out)
    assert (report["as_of_ms"], report["started_at_ms"]) == (began_ms, began_ms)
    assert planned == {began_ms}
    [notes] = [log["notes"] for log in report["logs"] if log["topic"] == "split"]
    assert "was split first" in notes[0], "it was not planned anew"
    [manifest] = kept.glob(f"*/{RUN_FILE}")
    assert json.loads(manifest.read_text())["started_at_ms"] == began_ms
    [entry] = [
        e for e in json.loads((log_dir / SET_ASIDE).read_text())["logs"] if e["topic"] == "bad"
    ]
    assert (entry["first_ms"], entry["last_ms"]) == (began_ms, began_ms)


def test_it_recovers_by_the_same(
    log_dir: Path, began_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What recovery writes is an hour younger than "now"; the log is cleaned all the same."""
    recovered = seen(monkeypatch, LogsToRecover, "now_ms")
    (log_dir / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    ended = run_command("run", log_dir, *RUN, "--recover-first")
    report = json.loads(ended.out)
    assert (recovered, report["as_of_ms"]) == ({began_ms}, began_ms)
    [log] = [log for log in report["logs"] if log["topic"] == "torn"]
    assert os.path.getsize(log_dir / "torn-0" / file_name(100, LOG)) == 0
    assert "cut off" in " ".join(log["notes"])
    assert log["status"] == "cleaned", log["reason"]
