"""Budgets of a plan and a run, and a run in turns where there is no room for all at once."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cleaner_jobs.user_cache import cache_dir
from compactor.api import budgeted_rounds, runs
from compactor.api.budgeted_rounds import BudgetedRounds
from compactor.host.clock import now_ms
from compactor.host.run_history import Pace, machine_pace
from compactor.outcome.round_report import (
    CleaningReport,
    LogStatus,
    PhaseReport,
    RetentionReport,
    SegmentCounts,
)
from compactor.planning import layout, space
from compactor.planning.space import WORK_BYTES, Room
from compactor.settings.rules import Rules
from storage.files.files import Disk
from storage.formats import checkpoint
from tests.compactor.plan_logs import COMPACT, NOW_MS, Shape, build, plan_log_dirs
from tests.compactor.rounds import log, report
from tests.support.local_command import Ended, run_command, use_local_rounds
from tests.support.made_log import keyed, make_partition

SETTINGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
KEYS = {"small": "ab", "middle": "abababab", "large": "abababababababab"}  # to clean: 81, 142, 236


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_local_rounds(monkeypatch, tmp_path / "work")
    monkeypatch.setattr(budgeted_rounds, "cache_dir", lambda _: tmp_path / "cache")
    for topic, keys in KEYS.items():
        segments = {0: [keyed(0, keys)], len(keys): [keyed(len(keys), "a")]}
        make_partition(tmp_path / "logs", segments, f"{topic}-0")
    ends = {(topic, 0): len(keys) + 1 for topic, keys in KEYS.items()}
    checkpoint.write(str(tmp_path / "logs" / checkpoint.REPLICATION), ends)
    (tmp_path / "topics.json").write_text(json.dumps(dict.fromkeys(KEYS, SETTINGS)))
    return tmp_path


def asked(command: str, root: Path, *words: str) -> Ended:
    given = "--topic-configs", root / "topics.json", "--format", "json"
    return run_command(command, root / "logs", *given, *words)


def cleaned(ended: Ended) -> set[str]:
    logs: list[dict[str, Any]] = ended.summary["logs"]
    return {log["topic"] for log in logs if log.get("status") in ("cleaned", "would-clean")}


@pytest.mark.parametrize(
    ("words", "taken", "told"),
    [
        (("--max-logs", "2"), {"large", "middle"}, "left out: --max-logs 2"),
        (("--max-bytes", "250"), {"large"}, "left out: --max-bytes 250"),
        (("--max-bytes", "250", "--order", "smallest"), {"small", "middle"}, "--max-bytes 250"),
        (("--max-bytes", "320 B"), {"large", "small"}, "--max-bytes 320"),
        (("--max-minutes", "0"), set(), "left out: no time for it in --max-minutes 0"),
        (("--max-logs", "1", "--order", "filthiest"), {"large"}, "left out: --max-logs 1"),
    ],
)
def test_a_budget_leaves_whole_logs_and_says_so(
    root: Path, words: tuple[str, ...], taken: set[str], told: str
) -> None:
    planned = asked("plan", root, *words)
    assert {log["topic"] for log in planned.summary["logs"]} == taken
    left = [log for log in planned.summary["not_taken"] if log["topic"] not in taken]
    assert {log["standing"] for log in left} == {"over-budget"}
    dry, wet = (asked("run", root, *words, *more) for more in (("--dry-run",), ()))
    assert cleaned(dry) == cleaned(wet) == taken
    assert (planned.code, dry.code, wet.code) == (0, 0, 0)
    for ended in (dry, wet):
        left = [log for log in ended.summary["logs"] if log["topic"] not in taken]
        assert len(left) == 3 - len(taken)
        assert {log["status"] for log in left} == {"passed-over"}
        assert all(told in log["reason"] for log in left)
    again = asked("run", root)
    assert cleaned(again) == KEYS.keys() - taken


def test_a_size_is_a_whole_number_with_a_unit(root: Path) -> None:
    ended = asked("plan", root, "--max-bytes", "lots")
    assert (ended.code, "like 500GB" in ended.summary["error"]) == (2, True)


def room_for(root: Path, monkeypatch: pytest.MonkeyPatch, free_bytes: int) -> None:
    """A disk with so much free beside the work directory's share, more once logs are smaller."""

    def size() -> int:
        return sum(path.stat().st_size for path in (root / "logs").rglob("*.log"))

    before = size()

    def found(_: str, name: str, __: Disk) -> Room:
        return Room(name, WORK_BYTES + free_bytes + before - size(), None)

    monkeypatch.setattr(space, "_room", found)
    monkeypatch.setattr(layout, "SMALLEST_SHARE_BYTES", 1 << 20)  # or each group is staged twice


def test_what_there_is_no_room_for_comes_in_a_later_turn(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One log at a time fits: each needs its size, an eighth of it, four blocks and its map."""
    room_for(root, monkeypatch, 4 * 4096 + 600)
    planned = asked("plan", root)
    assert len(planned.summary["space"]["left_out"]) == 2
    dry, wet = asked("run", root, "--dry-run"), asked("run", root)
    assert "a run takes them in later turns" in " ".join(dry.summary["notices"])
    assert cleaned(dry) == cleaned(wet) == set(KEYS)
    assert wet.code == 0
    records = [
        {log["topic"]: log["records"] for log in ended.summary["logs"]} for ended in (dry, wet)
    ]
    assert records[0] == records[1]


def test_what_still_does_not_fit_has_failed_for_want_of_room(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is larger than all that the others free."""
    keys = "ab" * 500
    segments = {0: [keyed(0, keys)], len(keys): [keyed(len(keys), "a")]}
    make_partition(root / "more", segments, "small-1")
    (root / "more" / "small-1").rename(root / "logs" / "small-1")
    ends = {(topic, 0): len(keys) + 1 for topic, keys in KEYS.items()} | {("small", 1): 1001}
    checkpoint.write(str(root / "logs" / checkpoint.REPLICATION), ends)
    room_for(root, monkeypatch, 4 * 4096 + 600)
    ended = asked("run", root)
    assert ended.code == 4
    [failed] = [log for log in ended.summary["logs"] if log["status"] == "failed"]
    assert (failed["topic"], failed["partition"]) == ("small", 1)
    assert failed["reason"].startswith("no room: ")
    assert cleaned(ended) == set(KEYS)


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def turn_of(seconds: float, start: float, log_bytes: int, first_use: float = 0.0) -> CleaningReport:
    phases = (
        PhaseReport("first-use", first_use, 0),
        PhaseReport("session", start, 0),
        PhaseReport("scan", seconds - start - first_use, log_bytes),
    )
    return CleaningReport(
        version="",
        run_id="",
        dry_run=False,
        as_of_ms=0,
        started_at_ms=0,
        seconds=seconds,
        logs=(),
        phases=phases,
    )


def test_a_run_goes_by_the_speed_of_earlier_runs_and_then_by_its_own(tmp_path: Path) -> None:
    """Three logs of two segments to clean, 158 bytes each; a minute, of which 0.7 is used."""
    log_dir = build(tmp_path / "d", *(Shape("t", number) for number in range(3)))
    plan = plan_log_dirs([log_dir], COMPACT, NOW_MS)
    clock = Clock()
    # (42 - 2) * 5 = 200 bytes: one log
    turns_of_run = BudgetedRounds(Rules(max_minutes=1), Pace(2.0, 5.0), clock)
    first = turns_of_run.within(plan)
    assert [log.partition for log in first.logs] == [0]
    assert turns_of_run.within(plan) == first  # until the turn is over
    clock.seconds = 10.0
    report = turn_of(10.0, 2.0, 158)
    assert turns_of_run.end(first, replace(report, logs=first.not_cleaned))
    # it took 8 s for 158 bytes: (50 * 0.7 - 2) * 19.75 = 651 bytes, both
    assert [log.partition for log in turns_of_run.within(plan).logs] == [1, 2]


def test_a_run_ends_where_there_is_no_time_for_another_log(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d", *(Shape("t", number) for number in range(3)))
    plan = plan_log_dirs([log_dir], COMPACT, NOW_MS)
    clock = Clock()
    turns_of_run = BudgetedRounds(Rules(max_minutes=1), Pace(2.0, 5.0), clock)
    first = turns_of_run.within(plan)
    clock.seconds = 40.0
    report = turn_of(40.0, 2.0, 158)  # slower than was thought: 20 * 0.7 - 2 = 12 s, 49 bytes
    assert turns_of_run.end(first, replace(report, logs=first.not_cleaned))
    second = turns_of_run.within(plan)
    assert second.logs == ()
    assert not turns_of_run.end(second, report)


def test_what_a_machine_does_once_is_no_speed_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A minute, of which it compiled for half, started Spark for 5 s, and read 1 GB for 25 s."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    runs._remember_speed(turn_of(60.0, 5.0, 1_000_000_000, first_use=30.0))
    pace = machine_pace(cache_dir(os.environ), now_ms())
    assert pace == Pace(5.0, 40e6, 1)


def test_nor_is_it_of_a_turn(tmp_path: Path) -> None:
    """Of 40 s it compiled for 30 s and started for 2 s: 8 s for 158 bytes."""
    log_dir = build(tmp_path / "d", *(Shape("t", number) for number in range(3)))
    plan = plan_log_dirs([log_dir], COMPACT, NOW_MS)
    clock = Clock()
    turns_of_run = BudgetedRounds(Rules(max_minutes=1), Pace(2.0, 5.0), clock)
    first = turns_of_run.within(plan)
    clock.seconds = 40.0
    report = turn_of(40.0, 2.0, 158, first_use=30.0)
    assert turns_of_run.end(first, replace(report, logs=first.not_cleaned))
    # (20 * 0.7 - 2) * 19.75 = 237 bytes: one more
    assert [log.partition for log in turns_of_run.within(plan).logs] == [1]


@pytest.mark.parametrize("dry_run", [False, True])
def test_what_the_first_turn_deleted_of_a_log_that_a_later_one_cleans_is_in_the_report(
    dry_run: bool,
) -> None:
    """A dry run deletes nothing, so that its later turn finds the same again."""
    put_off = replace(
        log(0, LogStatus.PASSED_OVER), retention=RetentionReport(time=SegmentCounts(2, 200))
    )
    put_off = replace(put_off, retention=replace(put_off.retention, log_start_offset=40))
    again = RetentionReport(time=SegmentCounts(2, 200), log_start_offset=40)
    later = replace(log(0), retention=again if dry_run else RetentionReport())
    first = replace(report(put_off), dry_run=dry_run)
    both = budgeted_rounds.joined_reports(
        first, report(later), {(later.log_dir, later.topic, later.partition)}
    )
    [found] = both.logs
    assert found.status is later.status
    assert found.retention == again
