"""--metrics: a file for a collector, however the command ended."""

from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from compactor.outcome.round_report import CleaningReport, LogStatus
from tests.compactor.rounds import log, report
from tests.support.local_command import run_command

COMPACTED = ("--include", "orders", "--set", "cleanup.policy=compact")


def _values(path: Path, name: str) -> dict[tuple[str, ...], float]:
    """By the values of labels, but for that of the file, which every series has."""
    families = text_string_to_metric_families(path.read_text())
    return {
        tuple(value for label, value in sorted(sample.labels.items()) if label != "file"): (
            sample.value
        )
        for family in families
        for sample in family.samples
        if sample.name == name and sample.labels["file"] == str(path)
    }


def test_of_a_plan(log_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.prom"
    assert run_command("plan", log_dir, *COMPACTED, "--metrics", path).code == 0
    outcome = _values(path, "compactor_command_outcome")
    assert outcome == {("plan", "done", "ok"): 1}
    logs = _values(path, "compactor_log_state")
    assert logs == {(str(log_dir), "0", "eligible", "orders"): 1}
    assert not list(tmp_path.glob("*.tmp"))


def test_of_a_run(log_dir: Path, tmp_path: Path, engine: Callable[[CleaningReport], None]) -> None:
    path = tmp_path / "run.prom"
    engine(report(log(0), log(1, LogStatus.SET_ASIDE, "bad")))
    assert run_command("run", log_dir, "--metrics", path).code == 4
    counts = _values(path, "compactor_logs")
    assert counts["run", "set_aside"] == 1 and counts["run", "cleaned"] == 1
    assert _values(path, "compactor_command_exit_code") == {("run",): 4}


def test_of_a_command_that_was_refused_and_of_the_last_that_was_not(tmp_path: Path) -> None:
    path = tmp_path / "plan.prom"
    path.write_text('compactor_command_success_timestamp_seconds{command="plan"} 5.0\n')
    assert run_command("plan", tmp_path / "nowhere", "--metrics", path).code == 2
    assert _values(path, "compactor_command_exit_code") == {("plan",): 2}
    assert _values(path, "compactor_command_success_timestamp_seconds") == {("plan",): 5.0}


@pytest.mark.parametrize(
    ("name", "says"), [("m.txt", "takes only .prom"), ("nowhere/m.prom", "there is no directory")]
)
def test_a_file_that_no_collector_would_find(
    log_dir: Path, tmp_path: Path, name: str, says: str
) -> None:
    ended = run_command("plan", log_dir, "--metrics", tmp_path / name)
    assert ended.code == 2
    assert says in ended.summary["error"]


def test_metrics_that_cannot_be_written_fail_a_command_that_went_well(
    log_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "m.prom.tmp").mkdir()
    ended = run_command("plan", log_dir, "--metrics", tmp_path / "m.prom")
    assert ended.code == 1
    assert f"The metrics {tmp_path / 'm.prom'} were not written" in ended.error
