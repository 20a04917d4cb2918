"""The metrics of made-up plans and runs, read by Prometheus' own parser of the format."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from compactor.outcome.round_report import CleaningReport, LogReport, LogStatus, PhaseReport
from compactor.reason_codes import ReasonCode
from compactor.watching.measures import LogMeasures, Measures
from compactor.watching.metrics import SUCCESS, Ending, metrics_text

PAGE = Path(__file__).parents[3] / "docs" / "watching.md"
PLANNED = Ending("plan", 0, "ok", "done", 5_000_000, 1.5, "0.1.0", "/p/plan.prom")
RAN = Ending("run", 0, "ok", "done", 5_000_000, 1.5, "0.1.0", "/p/run.prom")
VALUES = {
    "dirty_ratio": 0.5,
    "dirty_bytes": 300,
    "blocked_bytes": 100,
    "log_bytes": 700,
    "segments": 3,
    "seconds_since_clean": 400.0,
    "seconds_overdue": 2,
}
CLEAN = VALUES | {"dirty_bytes": 0, "seconds_since_clean": 0}
PLAN = Measures(
    tuple(VALUES),
    (
        LogMeasures('/da"ta\n', "orders", 0, "eligible", None, VALUES),
        LogMeasures("/data", "users", 1, "passed_over", "clean", CLEAN, ReasonCode.BELOW_RATIO),
        LogMeasures("/data", "x", 2, "set_aside", "damaged", {}),
    ),
    {"eligible": 1, "passed_over": 1, "set_aside": 1},
    4_000_000,
)
RUN = CleaningReport(
    version="0.1.0",
    run_id="r",
    dry_run=False,
    as_of_ms=0,
    started_at_ms=0,
    seconds=3.0,
    logs=(
        LogReport("/data", "orders", 0, LogStatus.CLEANED, bytes_before=1000, bytes_after=10),
        LogReport(
            "/data",
            "orders",
            1,
            LogStatus.FAILED,
            reason="full",
            bytes_before=5,
            reason_code=ReasonCode.NO_ROOM,
        ),
    ),
    phases=(PhaseReport("scan", 1.25, 1000), PhaseReport("swap", 0.5, 0)),
)

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(text: bytes) -> Samples:
    """Without the label that every series has: the file."""
    found: Samples = {}
    for family in text_string_to_metric_families(text.decode()):
        assert family.documentation and family.type == "gauge", family
        for sample in family.samples:
            assert sample.labels["file"].endswith(".prom")
            others = {name: value for name, value in sample.labels.items() if name != "file"}
            key = sample.name, tuple(sorted(others.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


def of_log(log_dir: str, topic: str, partition: int, **more: str) -> tuple[tuple[str, str], ...]:
    labels = {"log_dir": log_dir, "topic": topic, "partition": str(partition), **more}
    return tuple(sorted(labels.items()))


def test_of_a_plan() -> None:
    found = samples(metrics_text(PLANNED, plan=PLAN))
    orders = of_log('/da"ta\\n', "orders", 0)  # as it is printed everywhere
    users = of_log("/data", "users", 1)
    assert found["compactor_log_dirty_ratio", orders] == 0.5
    assert found["compactor_log_dirty_bytes", orders] == 300
    assert found["compactor_log_blocked_bytes", orders] == 100
    assert found["compactor_log_size_bytes", users] == 700
    assert found["compactor_log_segments", users] == 3
    assert found["compactor_log_overdue_seconds", orders] == 2
    assert found["compactor_log_oldest_dirty_timestamp_seconds", orders] == 3600
    assert ("compactor_log_oldest_dirty_timestamp_seconds", users) not in found
    assert found["compactor_log_state", of_log("/data", "x", 2, state="set_aside")] == 1
    assert ("compactor_log_size_bytes", of_log("/data", "x", 2)) not in found
    reasons = [dict(labels) for name, labels in found if name == "compactor_log_not_cleaned_info"]
    assert reasons == [dict(of_log("/data", "users", 1, reason_code="below-dirty-ratio"))]
    counted = {dict(k[1])["status"]: v for k, v in found.items() if k[0] == "compactor_logs"}
    assert counted == {"eligible": 1, "passed_over": 1, "set_aside": 1}


def test_of_a_run() -> None:
    found = samples(
        metrics_text(
            RAN._replace(exit_code=4, status="partial", reason_code="logs-failed", seconds=3),
            run=RUN,
        )
    )
    assert found["compactor_run_phase_seconds", (("phase", "scan"),)] == 1.25
    assert found["compactor_run_is_dry", ()] == 0
    assert found["compactor_run_log_before_bytes", of_log("/data", "orders", 0)] == 1000
    assert found["compactor_run_log_after_bytes", of_log("/data", "orders", 0)] == 10
    assert ("compactor_run_log_before_bytes", of_log("/data", "orders", 1)) not in found
    assert found["compactor_run_log_freed_bytes", of_log("/data", "orders", 0)] == 990
    reason = of_log("/data", "orders", 1, reason_code="no-room")
    assert found["compactor_run_log_not_cleaned_info", reason] == 1
    counted = {dict(k[1])["status"]: v for k, v in found.items() if k[0] == "compactor_logs"}
    assert counted == {
        "cleaned": 1,
        "failed": 1,
        "passed_over": 0,
        "set_aside": 0,
        "would_clean": 0,
    }
    outcome = (("command", "run"), ("reason_code", "logs-failed"), ("status", "partial"))
    assert found["compactor_command_outcome", outcome] == 1
    assert found["compactor_command_exit_code", (("command", "run"),)] == 4
    assert found["compactor_command_duration_seconds", (("command", "run"),)] == 3


def test_files_of_both_commands_have_no_sample_twice_and_the_same_help() -> None:
    """A collector of text files refuses both otherwise."""
    run, plan = (
        metrics_text(RAN, run=RUN),
        metrics_text(PLANNED, plan=PLAN),
    )
    assert samples(run).keys().isdisjoint(samples(plan))
    helps = [dict(re.findall(r"^# HELP (\S+) (.*)$", text.decode(), re.M)) for text in (run, plan)]
    assert all(helps[1].get(name, words) == words for name, words in helps[0].items())


def test_files_of_two_brokers_have_no_series_in_common() -> None:
    """Same host, same command, same paths of logs: two containers, for example."""

    def series(text: bytes) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
        families = text_string_to_metric_families(text.decode())
        found = [(s.name, tuple(sorted(s.labels.items()))) for f in families for s in f.samples]
        assert len(found) == len(set(found))
        return set(found)

    for ending, measured in ((PLANNED, {"plan": PLAN}), (RAN, {"run": RUN})):
        files = (f"/p/{name}.prom" for name in ("one", "two"))
        one, two = (series(metrics_text(ending._replace(file=f), **measured)) for f in files)
        assert one and one.isdisjoint(two)


@pytest.mark.parametrize("label", ["", ',file="/p/plan.prom"', ',file="/before/it/moved.prom"'])
def test_times_are_taken_over_from_a_file_that_names_no_file_or_another(label: str) -> None:
    previous = f'{SUCCESS}{{command="plan"{label}}} 5\n'.encode()
    failed = samples(metrics_text(PLANNED._replace(exit_code=1), previous=previous))
    assert failed[SUCCESS, (("command", "plan"),)] == 5
    of_log = f'topic="orders",partition="0",log_dir="/data"{label}'
    previous = f"compactor_run_log_cleaned_timestamp_seconds{{{of_log}}} 6\n".encode()
    assert _cleaned(metrics_text(RAN._replace(exit_code=1), previous=previous)) == {"orders-0": 6}


@pytest.mark.parametrize(("exit_code", "succeeds"), [(0, True), (5, True), (1, False), (4, True)])
def test_the_last_success_is_that_of_the_file_before(exit_code: int, succeeds: bool) -> None:
    key = SUCCESS, (("command", "plan"),)
    earlier = metrics_text(PLANNED, plan=PLAN)
    assert samples(earlier)[key] == 5000
    ending = PLANNED._replace(exit_code=exit_code, ended_ms=7_000_000)
    later = metrics_text(ending, previous=earlier)
    assert samples(later)[key] == (7000 if succeeds else 5000)
    again = metrics_text(ending._replace(exit_code=1, ended_ms=8_000_000), previous=later)
    assert samples(again)[key] == (7000 if succeeds else 5000)


def _cleaned(text: bytes) -> dict[str, float]:
    """By TOPIC-PARTITION."""
    return {
        f"{dict(labels)['topic']}-{dict(labels)['partition']}": value
        for (name, labels), value in samples(text).items()
        if name == "compactor_run_log_cleaned_timestamp_seconds"
    }


def test_the_time_of_a_cleaning_stays_until_the_next_one_of_that_log() -> None:
    def night(ended_ms: int, previous: bytes, *logs: LogReport) -> bytes:
        ended = RAN._replace(ended_ms=ended_ms)
        return metrics_text(ended, run=replace(RUN, logs=logs), previous=previous)

    a, b = RUN.logs[0], replace(RUN.logs[0], partition=7)
    left = replace(a, status=LogStatus.PASSED_OVER, reason_code=ReasonCode.BELOW_RATIO)
    first = night(1_000, b"", a, b)
    assert _cleaned(first) == {"orders-0": 1, "orders-7": 1}
    second = night(2_000, first, left, b)
    assert _cleaned(second) == {"orders-0": 1, "orders-7": 2}
    would = replace(b, status=LogStatus.WOULD_CLEAN)
    assert _cleaned(night(3_000, second, left, would)) == _cleaned(second)
    failed = metrics_text(RAN._replace(exit_code=1, ended_ms=3_000), previous=second)
    assert _cleaned(failed) == _cleaned(second)
    assert _cleaned(night(4_000, failed, b)) == {"orders-7": 4}  # the other was deleted


@pytest.mark.parametrize(
    "previous",
    [b"", b"\xff", b"{", SUCCESS.encode(), SUCCESS.encode() + b'{command="plan"} x',
     SUCCESS.encode() + b'{command="run"} 5', SUCCESS.encode() + b'{command="plan"} NaN'],
)  # fmt: skip
def test_what_cannot_be_read_of_the_file_before_says_nothing(previous: bytes) -> None:
    failed = PLANNED._replace(exit_code=1)
    assert (SUCCESS, (("command", "plan"),)) not in samples(metrics_text(failed, previous=previous))


def test_the_page_has_every_metric_with_its_labels() -> None:
    page = PAGE.read_text("utf-8")
    assert "Every series has the label `file`" in page
    rows = dict(re.findall(r"^\| `(compactor_\w+)` \|([^|]*)\|", page, re.M))
    run = metrics_text(RAN, run=RUN)
    labels: dict[str, set[str]] = {}
    for name, of_sample in samples(run) | samples(metrics_text(PLANNED, plan=PLAN)):
        labels[name] = {label for label, _ in of_sample}
    assert {name: set(re.findall(r"`(\w+)`", row)) for name, row in rows.items()} == labels
