"""Reports of several hosts made one."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.local_command import run_command


def _report(path: Path, code: int, reason_code: str, **more: Any) -> str:
    document = {
        "schema_version": 1,
        "command": "run",
        "status": "whatever",
        "exit_code": code,
        "reason_code": reason_code,
        "run_id": path.stem,
        "host": path.stem,
        **more,
    }
    path.write_text(json.dumps(document))
    return str(path)


def _totals(cleaned: int, before: int, after: int) -> dict[str, Any]:
    return {"logs": {"cleaned": cleaned}, "bytes_before": before, "bytes_after": after}


def test_sums_and_the_worst_ending(tmp_path: Path) -> None:
    paths = [
        _report(tmp_path / "a.json", 0, "done", changed=True, totals=_totals(2, 100, 40)),
        _report(tmp_path / "b.json", 3, "lock-held", error="somebody is at work"),
        _report(tmp_path / "c.json", 4, "logs-failed", totals=_totals(3, 50, 45)),
    ]
    ended = run_command("report", *paths)
    assert (ended.code, ended.summary["reason_code"]) == (3, "lock-held")
    assert ended.summary["changed"] is True
    assert ended.summary["totals"] == _totals(5, 150, 85)
    assert "b (" in ended.out and "somebody is at work" in ended.out
    assert "3 reports: 5 logs cleaned, 65 B freed" in ended.out
    document = json.loads(run_command("report", *paths, "--format", "json").out)
    assert [found["host"] for found in document["reports"]] == ["a", "b", "c"]
    assert [found["file"] for found in document["reports"]] == paths


def test_where_a_report_is_from_and_which_logs_were_set_aside(tmp_path: Path) -> None:
    def log(partition: int, status: str, log_dir: str = "/disk1/kafka") -> dict[str, Any]:
        named = {"log_dir": log_dir, "topic": "orders", "partition": partition}
        return named | {"status": status, "reason": f"why {partition}", "reason_code": "damaged"}

    logs = [log(1, "cleaned"), log(2, "set-aside"), log(3, "failed", "/disk2/kafka")]
    many = [log(partition, "set-aside") for partition in range(100, 112)]
    log_dirs = [{"path": "/disk1/kafka"}, {"path": "/disk2/kafka"}]
    paths = [
        _report(tmp_path / "a.json", 4, "logs-set-aside", log_dirs=log_dirs, logs=logs),
        _report(tmp_path / "b.json", 4, "logs-set-aside", logs=many[:1], not_taken=many[1:]),
    ]
    lines = run_command("report", *paths).out.splitlines()
    assert f"a ({paths[0]}): /disk1/kafka, /disk2/kafka" in lines
    assert "  /disk1/kafka/orders-2 set-aside: why 2" in lines
    assert "  /disk2/kafka/orders-3 failed: why 3" in lines
    assert not [line for line in lines if "orders-1 " in line]
    assert [line for line in lines if line.startswith("  and ")] == ["  and 2 more logs"]


@pytest.mark.parametrize(
    ("codes", "worst"),
    [([0, 5, 4], 4), ([4, 2], 2), ([2, 3], 3), ([3, 130], 130), ([143, 1], 1), ([0, 0], 0)],
)
def test_which_ending_is_the_worst(tmp_path: Path, codes: list[int], worst: int) -> None:
    paths = [_report(tmp_path / f"{n}.json", code, "done") for n, code in enumerate(codes)]
    assert run_command("report", *paths).code == worst


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "byte 0: not JSON"),
        ("[1]", "not a report of this tool"),
        ('{"schema_version": 1}', "not a report of this tool"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_report_is_refused_by_its_name(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "x.json").write_text(text)
    ended = run_command("report", tmp_path / "x.json")
    assert ended.code == 2
    assert f"{tmp_path}/x.json" in ended.summary["error"] and says in ended.summary["error"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("schema_version", value) for value in (3, 0, True)),
        *(("exit_code", value) for value in (77, "0")),
    ],
)
def test_a_report_of_another_version_is_refused(tmp_path: Path, name: str, value: object) -> None:
    path = _report(tmp_path / "x.json", 0, "done", totals={})
    found = json.loads(Path(path).read_text()) | {name: value}
    Path(path).write_text(json.dumps(found))
    ended = run_command("report", path)
    assert ended.code == 2 and f"{name} {json.dumps(value)}" in ended.summary["error"]


def test_reports_of_both_versions_are_put_together(tmp_path: Path) -> None:
    """The first had numbers that stood for none in fields that are not looked at here."""
    paths = [_report(tmp_path / f"{n}.json", 0, "done", totals=_totals(1, 9, 4)) for n in (1, 2)]
    for version, path in enumerate(paths, 1):
        found = json.loads(Path(path).read_text()) | {"schema_version": version}
        Path(path).write_text(json.dumps(found))
    ended = run_command("report", *paths)
    assert ended.code == 0 and "2 reports: 2 logs cleaned" in ended.out


def test_a_report_that_is_not_there(tmp_path: Path) -> None:
    ended = run_command("report", tmp_path / "x.json")
    assert (ended.code, ended.summary["reason_code"]) == (2, "wrong-usage")
    assert f"{tmp_path}/x.json: there is no such file" in ended.error


def test_a_dry_run_has_cleaned_nothing_and_every_line_says_when(tmp_path: Path) -> None:
    """Who looks in the morning has to see a report of another night, and what was only tried."""
    times = {"started_at": "2026-11-22T03:00:00.123Z", "seconds": 7.5}
    tried = {"logs": {"cleaned": 0, "would-clean": 9}, "bytes_before": 500, "bytes_after": 1}
    paths = [
        _report(tmp_path / "a.json", 0, "done", dry_run=True, totals=tried, **times),
        _report(tmp_path / "b.json", 0, "done", dry_run=False, totals=_totals(2, 90, 40), **times),
    ]
    shown = run_command("report", *paths).out
    assert "2 reports: 2 logs cleaned, 50 B freed" in shown
    assert shown.startswith("started (UTC) ")
    assert shown.count("2026-11-22 03:00:00") == 2
    assert "run --dry-run" in shown
    assert "none of them has cleaned anything" in run_command("report", paths[0]).out
