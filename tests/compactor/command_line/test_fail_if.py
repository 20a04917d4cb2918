"""--fail-if: exit code 5, and what is said of it."""

import json
from collections.abc import Callable
from pathlib import Path

from compactor.outcome.round_report import CleaningReport, LogStatus
from tests.compactor.rounds import log, report
from tests.support.local_command import run_command

COMPACTED = ("--include", "orders", "--set", "cleanup.policy=compact")


def test_a_plan_of_which_a_condition_holds(log_dir: Path) -> None:
    words = ["plan", log_dir, *COMPACTED, "--fail-if", "segments > 1", "--fail-if", "logs > 1"]
    ended = run_command(*words)
    assert (ended.code, ended.summary["status"]) == (5, "condition")
    (met,) = ended.summary["conditions_met"]
    assert met["condition"] == "segments > 1"
    assert [(entry["topic"], entry["partition"]) for entry in met["logs"]] == [("orders", 0)]
    assert "Condition met: segments > 1\n  orders-0: segments " in ended.out
    assert json.loads(run_command(*words, "--format", "json").out)["conditions_met"] == [met]


def test_a_plan_of_which_none_holds(log_dir: Path) -> None:
    ended = run_command("plan", log_dir, *COMPACTED, "--fail-if", "set_aside > 0")
    assert ended.code == 0
    assert "Condition" not in ended.out


def test_a_condition_that_cannot_be_read_is_wrong_usage_before_anything_is_read() -> None:
    for command in ("plan", "run"):
        ended = run_command(command, "/nowhere", "--fail-if", "set_asid > 0")
        assert ended.code == 2
        assert "did you mean set_aside?" in ended.summary["error"]


def test_conditions_are_on_what_a_run_did(
    log_dir: Path, engine: Callable[[CleaningReport], None]
) -> None:
    engine(report(log(0), log(1, LogStatus.SET_ASIDE, "bad")))
    ended = run_command("run", log_dir, "--fail-if", "set_aside > 0")
    assert (ended.code, ended.summary["status"]) == (5, "condition")
    assert [entry["partition"] for entry in ended.summary["conditions_met"][0]["logs"]] == [1]
    assert run_command("run", log_dir, "--fail-if", "set_aside > 1").code == 4


def test_a_run_that_failed_keeps_its_exit_code(
    log_dir: Path, engine: Callable[[CleaningReport], None]
) -> None:
    engine(report(log(0, LogStatus.FAILED, "full")))
    ended = run_command("run", log_dir, "--fail-if", "failed > 0")
    assert (ended.code, ended.summary["status"]) == (1, "failed")
    assert ended.summary["conditions_met"]
