"""How a plan is shown: all of it as JSON, the gist of it on a terminal."""

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from compactor.api.plans import Plan
from compactor.log_dirs.preconditions import RunEnding
from compactor.outcome.exit_codes import DONE
from compactor.outcome.json_values import to_json
from compactor.planning.expected import Estimate, Expected, no_estimate
from compactor.planning.round_plan import ALL_LOG_DIRS, RoundPlan
from compactor.settings.config import load_config
from compactor.settings.rules import Order
from compactor.views.plan_json import plan_document
from compactor.views.plan_table import (
    NOT_REFUSED,
    NOTHING_ELSE,
    ONE_SCREEN,
    PlanDetails,
    Screen,
    plan_view,
)
from storage.formats import checkpoint
from tests.compactor.plan_logs import (
    COMPACT,
    NOW_MS,
    Shape,
    build,
    clean_up_to,
    plan_log_dirs,
    with_settings,
)


def shown(
    plan: RoundPlan, width: int = 120, screen: Screen = ONE_SCREEN, said: PlanDetails = NOTHING_ELSE
) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(plan_view(plan, width, said, screen), crop=False)
    return out.getvalue()


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def document_of(plan: RoundPlan, order: Order = Order.GAIN) -> dict[str, Any]:
    planned = Plan(plan, None, RunEnding(*DONE), (), Expected(0.0, 0))
    found: dict[str, Any] = json.loads(json.dumps(to_json(plan_document(planned, order))))
    return found


def mixed_plan(root: Path) -> RoundPlan:
    """Cleaned once, never cleaned, with a high watermark that is low, with a leftover."""
    log_dir = build(root / "d", Shape("once"), Shape("never"), Shape("low"), Shape("left"))
    clean_up_to(root / "d", ("once", 0, 2), ("never", 0, 99))
    ends = {("once", 0): 6, ("never", 0): 6, ("low", 0): 1, ("left", 0): 6}
    checkpoint.write(str(root / "d" / checkpoint.REPLICATION), ends)
    (root / "d" / "left-0" / "00000000000000000000.log.swap").write_bytes(b"")
    return plan_log_dirs([log_dir], with_settings({"min.cleanable.dirty.ratio": "0.4"}), NOW_MS)


def test_the_document_of_a_taken_log(tmp_path: Path) -> None:
    plan = mixed_plan(tmp_path)
    document = document_of(plan)
    first, second = document["logs"]
    assert (first["topic"], second["topic"]) == ("never", "once")
    written = (tmp_path / "d" / "once-0" / f"{2:020}.log").stat().st_mtime_ns
    assert second == {
        "log_dir": str(tmp_path / "d"),
        "topic": "once",
        "partition": 0,
        "standing": "to-clean",
        "total_bytes": 237,
        "dirty_bytes": 79,
        "gain_bytes": 79,
        "held_bytes": 0,
        "held_by": None,
        "dirty_since_ms": written // 1_000_000,
        "log_start_offset": 0,
        "log_end_offset": 6,
        "last_stable_offset": 6,
        "cleaner_checkpoint": 2,
        "first_dirty_offset": 2,
        "first_dirty_set_by": "cleaner checkpoint",
        "first_uncleanable_offset": 4,
        "bounds": [
            {"name": "active segment", "offset": 4, "cause": ""},
            {"name": "high watermark", "offset": 6, "cause": "replication-offset-checkpoint"},
        ],
        "clean_bytes": 79,
        "cleanable_bytes": 79,
        "dirty_ratio": 0.5,
        "min_cleanable_dirty_ratio": 0.4,
        "max_compaction_lag_ms": None,
        "compaction_delay_ms": 0,
        "segments": 2,
        "groups": [{"base_offset": 0, "segments": [0, 2], "log_bytes": 158}],
        "active_producers": 0,
        "notes": [],
    }


def test_the_document_of_the_rest(tmp_path: Path) -> None:
    plan = mixed_plan(tmp_path)
    document = document_of(plan)
    left, low = document["not_taken"]
    assert (left["topic"], left["status"]) == ("left", "set-aside")
    assert "bounds" not in left
    sizes = ("standing", "total_bytes", "dirty_bytes", "gain_bytes", "held_bytes", "held_by")
    assert [left[name] for name in sizes] == ["set-aside", 237, None, 0, 0, None]
    assert [low[name] for name in sizes[1:]] == [237, 158, 0, 158, "high watermark"]
    assert (low["topic"], low["status"]) == ("low", "passed-over")
    assert low["reason"] == plan.not_cleaned[1].reason
    assert low["bounds"][1] == {
        "name": "high watermark",
        "offset": 1,
        "cause": "replication-offset-checkpoint",
    }
    assert document["totals"] == {
        "to_clean": 2,
        "set_aside": 1,
        "passed_over": 1,
        "cleanable_bytes": 237,
        "rewrite_bytes": 316,
    }
    assert [topic["topic"] for topic in document["topics"]] == ["never", "once", "left", "low"]
    assert document["topics"][3] == {
        "topic": "low",
        "logs": 1,
        "to_clean": 0,
        "total_bytes": 237,
        "dirty_bytes": 158,
        "gain_bytes": 0,
        "held_bytes": 158,
        "held_by": "high watermark",
    }
    assert {name: found["logs"] for name, found in document["standings"].items()} == {
        "to-clean": 2,
        "high-watermark": 1,
        "set-aside": 1,
    }
    repair = {"log_dir": str(tmp_path / "d"), "topic": "never", "partition": 0, "offset": 0}
    assert document["checkpoint_repairs"] == [repair]
    (log_dir,) = document["log_dirs"]
    assert (log_dir["partitions"], log_dir["has_clean_shutdown"]) == (4, True)


def test_the_table_tells_what_is_to_be_done_and_why_not(tmp_path: Path) -> None:
    text = shown(mixed_plan(tmp_path))
    found = rows(text)
    never = "never-0 237 B 158 B 100.0% 158 B 2 → 1 0–4 to clean"
    assert never.split() in found
    assert "once-0 237 B 79 B 50.0% 158 B 2 → 1 2–4 to clean".split() in found
    assert "low-0 237 B 158 B 0.0% 158 B high watermark passed over".split() in found
    assert "left-0 237 B set aside".split() in found
    assert "4 logs of 4 topics, 948 B: 395 B dirty, of which a run would clean 237 B" in text
    assert "blocked by the high watermark 1 237 B 158 B 158 B high watermark".split() in found
    assert "all 4 948 B 395 B 237 B 158 B high watermark".split() in found
    assert "00000000000000000000.log.swap: left by a cleaning that was cut short" in text
    assert "158 B from offset 0 on wait behind the high watermark 1" in text
    assert f", corrected by a run: 1 {ALL_LOG_DIRS} Logs: 2 to clean" in " ".join(text.split())
    assert "Logs: 2 to clean, 1 set aside, 1 passed over. 237 B dirty, 316 B to read and" in text


def test_dirty_bytes_are_called_so_and_a_sample_says_what_would_be_freed(tmp_path: Path) -> None:
    """158 bytes of each would be rewritten: a quarter to a half is 39.5 to 79, a half is 79."""
    plan = mixed_plan(tmp_path)
    assert [(log.topic, log.log_bytes) for log in plan.logs] == [("never", 158), ("once", 158)]
    estimates = {
        plan.logs[0].path: Estimate(0.25, 0.5, 100),
        plan.logs[1].path: Estimate(0.5, 0.5, 158),
    }
    text = shown(plan)
    assert "dirty to clean" in text
    assert "to gain" not in text + shown(plan, screen=Screen(top=1))
    assert "estimated gain" not in text
    said = PlanDetails(estimates=estimates)
    found = rows(shown(plan, 160, said=said))
    assert "to clean 2 474 B 237 B 237 B 118 B to 158 B".split() in found
    assert "all 4 948 B 395 B 237 B 118 B to 158 B 158 B high watermark".split() in found
    assert "once-0 237 B 79 B 50.0% 50.0% 79 B 158 B 2 → 1 2–4 to clean".split() in found
    topics = rows(shown(plan, 160, Screen(top=1), said))
    assert "never 1 1 237 B 158 B 100.0% 158 B 40 B to 79 B".split() in topics
    assert any(row[:4] == ["…", "and", "3", "more"] and row[-8:-6] == ["79", "B"] for row in topics)


def test_a_gain_that_cannot_be_told_is_called_so(tmp_path: Path) -> None:
    plan = mixed_plan(tmp_path)
    estimates = {log.path: no_estimate(100, "too few keys") for log in plan.logs}
    found = shown(plan, 160, Screen(top=1), PlanDetails(estimates=estimates))
    assert "never 1 1 237 B 158 B 100.0% 158 B not known".split() in rows(found)


def test_the_list_says_what_its_order_goes_by(tmp_path: Path) -> None:
    """By dirty bytes, as a run does, whatever a sample says."""
    plan = mixed_plan(tmp_path)
    estimates = {
        plan.logs[0].path: Estimate(0.0, 0.0, 158),
        plan.logs[1].path: Estimate(1.0, 1.0, 158),
    }
    text = shown(plan, 160, said=PlanDetails(estimates=estimates))
    assert "log, most to clean first" in text
    assert text.index("never-0") < text.index("once-0")


def test_what_to_do_stands_below_the_sizes_and_whether_a_run_would_be_refused(
    tmp_path: Path,
) -> None:
    plan = mixed_plan(tmp_path)
    found = [" ".join(row) for row in rows(shown(plan))]
    first = found.index("what to do")
    assert found[first + 1 : first + 3] == [
        "blocked by the high watermark start the broker until replicas have it; of an only copy: "
        "--assume-fully-replicated",
        "set aside compactor recover, or run again",
    ]
    assert NOT_REFUSED in " ".join(shown(plan, said=PlanDetails(refusals=())).split())
    refused = " ".join(shown(plan, said=PlanDetails(refusals=("locked",))).split())
    assert "A run would be refused: locked" in refused
    assert NOT_REFUSED not in refused + shown(plan)


def test_the_table_says_what_else_matters(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d", Shape("a"), Shape("b"))
    (tmp_path / "d" / "scratch").mkdir()
    config = load_config(
        settings={"cleanup.policy": "compact,delete", "max.compaction.lag.ms": "1000"}
    )
    text = " ".join(shown(plan_log_dirs([log_dir], config, NOW_MS)).split())
    assert "scratch is not looked at: not named like a partition" in text
    assert "Retention would delete" not in text
    assert "a-0 237 B 158 B 100.0% 158 B 2 → 1 0–4 overdue" in text


def test_what_retention_would_delete_is_told_apart(tmp_path: Path) -> None:
    """C-18: times 1000, 2000, 3000; at 4500 the first two are older than 2000."""
    log_dir = build(tmp_path / "d", Shape("a"))
    config = load_config(settings={"cleanup.policy": "compact,delete", "retention.ms": "2000"})
    plan = plan_log_dirs([log_dir], config, 4500)
    found = rows(shown(plan))
    assert ["a-0", "2", "2", "158", "B", "4"] in found  # by time, and by no other rule
    (document,) = document_of(plan)["retention"]
    assert document == {
        "log_dir": log_dir,
        "topic": "a",
        "partition": 0,
        "high_watermark": 6,
        "retention_ms": 2000,
        "retention_bytes": None,
        "log_start_offset": 4,
        "log_start": {"segments": 0, "bytes": 0},
        "size": {"segments": 0, "bytes": 0},
        "time": {"segments": 2, "bytes": 158},
    }


def test_what_takes_reading_is_null_for_a_log_that_is_not_read(tmp_path: Path) -> None:
    """Its names and checkpoints say that it is clean; nothing at its end could change that."""
    log_dir = build(tmp_path / "d")
    clean_up_to(tmp_path / "d", ("t", 0, 4))
    config = with_settings({"max.compaction.lag.ms": "5"})
    (document,) = document_of(plan_log_dirs([log_dir], config, NOW_MS))["not_taken"]
    names = ("log_end_offset", "last_stable_offset", "max_compaction_lag_ms")
    assert [document[name] for name in names] == [None, None, 5]


def test_a_policy_without_delete_has_no_retention(tmp_path: Path) -> None:
    """C-18.1: neither time nor size, whatever retention.ms and retention.bytes say."""
    log_dir = build(tmp_path / "d", Shape("a"))
    config = with_settings({"retention.ms": "0", "retention.bytes": "0"})
    assert plan_log_dirs([log_dir], config, NOW_MS).retention == ()


def test_many_logs_do_not_flood_the_terminal(tmp_path: Path) -> None:
    shapes = [Shape(f"topic-{number}", segments=1 + number % 2) for number in range(100)]
    plan = plan_log_dirs([build(tmp_path / "d", *shapes)], COMPACT, NOW_MS)
    text = shown(plan)
    assert len(text.splitlines()) < 40
    assert "nothing dirty but the active segment 50 4.0 kB".split() in rows(text)
    assert "… and 90 more 90 40 10.3 kB 3.2 kB 100.0% 3.2 kB".split() in rows(text)
    assert "only the active segment" not in text
    whole = shown(plan, screen=Screen(top=None))
    assert "topic-0-0, topic-10-0, topic-12-0 and 47 more" in whole
    assert "only the active segment, of 79 B" in whole
    assert "topic-99-0 158 B 79 B 100.0% 79 B 1 → 1 0–2 to clean".split() in rows(whole)
    assert len(document_of(plan)["not_taken"]) == 50


def test_a_narrow_terminal_and_hostile_names_are_survived(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d", Shape("red\x1b[31m"), Shape("[bold]x"))
    text = shown(plan_log_dirs([log_dir], COMPACT, NOW_MS), width=60)
    assert "\x1b" not in text
    assert "red\\x1b[31m-" in text
    assert "[bold]x-0" in text
    longer = [line for line in text.splitlines() if len(line) > 60]
    assert [line for line in longer if " " in line.strip()] == []  # a path is not broken


def test_an_empty_plan_is_shown_as_one(tmp_path: Path) -> None:
    plan = plan_log_dirs([build(tmp_path / "d", Shape(segments=1))], COMPACT, NOW_MS)
    assert "Logs: 0 to clean, 0 set aside, 1 passed over." in shown(plan)


@pytest.mark.parametrize(
    ("order", "first"),
    [
        (Order.GAIN, ["large", "never", "once", "small"]),
        (Order.FILTHIEST, ["large", "never", "small", "once"]),
        (Order.SMALLEST, ["small", "never", "once", "large"]),
        (Order.OLDEST, ["once", "small", "never", "large"]),
    ],
)
def test_topics_come_in_the_order_that_is_asked_for(
    tmp_path: Path, order: Order, first: list[str]
) -> None:
    """Dirty: all four segments but the active one; two of three; one of three; the only one."""
    shapes = Shape("never"), Shape("once"), Shape("large", segments=5), Shape("small", segments=2)
    log_dir = build(tmp_path / "d", *shapes)
    clean_up_to(tmp_path / "d", ("once", 0, 2))
    for minutes, (topic, base_offset) in enumerate(
        [("once", 2), ("small", 0), ("never", 0), ("large", 0)]
    ):
        path = tmp_path / "d" / f"{topic}-0" / f"{base_offset:020}.log"
        os.utime(path, (60 * minutes, 60 * minutes))
    plan = plan_log_dirs([log_dir], with_settings({"min.cleanable.dirty.ratio": "0.4"}), NOW_MS)
    assert [topic["topic"] for topic in document_of(plan, order)["topics"]] == first
    listed = [row[0] for row in rows(shown(plan, screen=Screen(order))) if row and "-0" in row[0]]
    assert listed == [f"{topic}-0" for topic in first]
    topics = [row[0] for row in rows(shown(plan, screen=Screen(order, top=3))) if row]
    assert topics[topics.index("topic,") + 1 :][:3] == first[:3]
