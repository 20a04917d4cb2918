"""The file of --report: what it may be called, what it may replace, and its four forms."""

import json
import os
import re
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from compactor.command_context import CommandContext
from compactor.command_line.output_files import report_files, write_report
from compactor.errors import UsageError
from compactor.views.page.contents import rows_of as page_rows
from compactor.views.report_rows import rows_of
from tests.support.local_command import run_command, use_local_rounds

MIDNIGHT_MS = 1_700_006_400_000  # 2023-11-15T00:00Z
COMPACT = ("--include", "orders", "--set", "cleanup.policy=compact")
RUN = (*COMPACT, "--set", "min.cleanable.dirty.ratio=0", "--assume-fully-replicated")


def named(path: Path, started_at_ms: int = MIDNIGHT_MS) -> str:
    [found] = report_files([str(path)], CommandContext(started_at_ms, "cafe0123"))
    return found


def test_known_endings(tmp_path: Path) -> None:
    assert report_files((), CommandContext(0, "x")) == ()
    for name in ("r.json", "R.JSON", "r.html", "r.csv", "r.parquet"):
        assert named(tmp_path / name) == str(tmp_path / name)


@pytest.mark.parametrize("name", ["r", "r.txt", "json", ".json.gz"])
def test_an_unknown_extension(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"unknown extension '.*', expected \.json, \.html"):
        named(tmp_path / name)


def test_a_place_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no directory"):
        named(tmp_path / "x" / "r.json")
    (tmp_path / "d.json").mkdir()
    with pytest.raises(UsageError, match="is a directory"):
        named(tmp_path / "d.json")


def test_a_place_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    with pytest.raises(UsageError, match="no permission to write in"):
        named(tmp_path / "r.json")


def test_a_name_with_the_run_or_the_date_is_a_new_file_each_time(tmp_path: Path) -> None:
    assert named(tmp_path / "{run_id}.json") == str(tmp_path / "cafe0123.json")
    assert named(tmp_path / "{date}.json", MIDNIGHT_MS - 1) == str(tmp_path / "2023-11-14.json")
    for expected in ("r-2023-11-15.json", "r-2023-11-15-2.json", "r-2023-11-15-3.json"):
        found = named(tmp_path / "r-{date}.json")
        assert found == str(tmp_path / expected)
        Path(found).write_text("kept")
    assert (tmp_path / "r-2023-11-15.json").read_text() == "kept"


@pytest.mark.parametrize("extension", [".json", ".html", ".csv", ".parquet"])
def test_a_report_gives_way_to_the_next_and_another_file_does_not(
    log_dir: Path, tmp_path: Path, extension: str
) -> None:
    path = tmp_path / f"last{extension}"
    path.touch()  # as mktemp makes one
    for _ in range(2):
        assert run_command("plan", log_dir, *COMPACT, "--report", path).code == 0
        assert path.stat().st_size > 0
    path.write_text('{"orders": {"cleanup.policy": "compact"}}')
    ended = run_command("plan", log_dir, *COMPACT, "--report", path)
    assert (ended.code, "is there, is no report, and is not replaced" in ended.error) == (2, True)
    assert path.read_text().startswith('{"orders"')
    assert sorted(os.listdir(tmp_path)) == [f"last{extension}", "log"]


def test_the_name_has_the_run_of_the_ending(log_dir: Path, tmp_path: Path) -> None:
    said = run_command("plan", log_dir, "--report", tmp_path / "{run_id}.json").summary
    assert json.loads((tmp_path / f"{said['run_id']}.json").read_text())["run_id"] == said["run_id"]


def test_rows_of_a_run(log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_local_rounds(monkeypatch, tmp_path / "work")
    words = ["run", log_dir, *RUN, "--dry-run", "--report"]
    for name in ("r.json", "r.csv", "r.parquet"):
        assert run_command(*words, tmp_path / name).code == 0
    [log] = json.loads((tmp_path / "r.json").read_text())["logs"]
    tables = [
        pyarrow.csv.read_csv(tmp_path / "r.csv").to_pylist(),
        pyarrow.parquet.read_table(tmp_path / "r.parquet").to_pylist(),
    ]
    for [row] in tables:
        assert row["command"] == "run"
        assert re.fullmatch("[a-f][0-9a-f]{7}", row["run_id"])
        assert (row["topic"], row["partition"], row["status"]) == ("orders", 0, "would-clean")
        assert row["records_dropped_superseded"] == log["records"]["dropped"]["superseded"] > 0
        assert row["bytes_before"] == log["bytes_before"]
        assert row["retention_time_bytes"] == 0


def test_rows_of_a_plan_are_those_taken_and_those_not(log_dir: Path, tmp_path: Path) -> None:
    run_command("plan", log_dir, "--report", tmp_path / "r.parquet")
    [row] = pyarrow.parquet.read_table(tmp_path / "r.parquet").to_pylist()
    assert (row["topic"], row["reason_code"]) == ("orders", "unknown-policy")


def test_an_ending_without_rows_leaves_a_file_of_none(log_dir: Path, tmp_path: Path) -> None:
    ended = run_command("plan", log_dir, "--config", "no.toml", "--report", tmp_path / "r.parquet")
    assert ended.code == 2
    assert pyarrow.parquet.read_table(tmp_path / "r.parquet").num_rows == 0


def test_names_that_are_no_utf8_are_written_as_escapes(tmp_path: Path) -> None:
    document = {"command": "run", "logs": [{"topic": "a\udcff<b>", "partition": 1}]}
    for name in ("r.csv", "r.parquet"):
        write_report(str(tmp_path / name), document)
    [row] = pyarrow.parquet.read_table(tmp_path / "r.parquet").to_pylist()
    assert row == {"command": "run", "topic": "a\\udcff<b>", "partition": 1}
    assert rows_of(document)[0]["topic"] == "a\udcff<b>"


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_what_the_page_draws_after_a_run_is_what_is_on_disk(
    log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    """Of every log; with delete, retention by size takes whole segments after the cleaning."""

    def on_disk() -> dict[str, int]:
        return {
            path.name: sum(log.stat().st_size for log in path.glob("*.log"))
            for path in log_dir.glob("*-0")
        }

    use_local_rounds(monkeypatch, tmp_path / "work")
    words = [*RUN, "--set", f"cleanup.policy={policy}", "--set", "retention.bytes=1"]
    words.remove("cleanup.policy=compact")
    words.remove("--set")
    before, path = on_disk(), tmp_path / "run.json"
    assert run_command("run", log_dir, *words, "--report", path).code == 0
    document = json.loads(path.read_text())
    deleted = sum(log["retention"]["size"]["segments"] for log in document["logs"])
    assert (deleted > 0) is (policy == "compact,delete")
    rows = page_rows(document)
    assert {row.name: row.total for row in rows} == before
    assert {row.name: row.after.total for row in rows if row.after} == on_disk() != before
