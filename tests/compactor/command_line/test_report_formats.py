"""Every command that has --report, in every format: written, with the rows that it is about."""

import csv
import json
import re
from pathlib import Path

import pyarrow.parquet
import pytest

from compactor.command_line.commands import app
from compactor.command_line.output_files import EXTENSIONS, write_report
from compactor.views.report_json import JsonObject
from tests.compactor.originals.test_undo import Kept, merged
from tests.support.local_command import run_command, use_local_rounds
from tests.support.local_round import LocalRound

RULES = ("--include", "orders", "--set", "cleanup.policy=compact", "--assume-fully-replicated")
COMMANDS: dict[str, tuple[tuple[str, ...], int | None, str]] = {  # words, rows, one of its columns
    "plan": (("plan", "LOG_DIR", *RULES), 1, "total_bytes"),
    "run": (("run", "LOG_DIR", *RULES, "--dry-run"), 1, "records_dropped_superseded"),
    "recover": (("recover", "LOG_DIR"), 0, "truncated"),
    "undo": (("undo", "KEPT_RUN"), 2, "status"),
    "explain": (("explain", "LOG_DIR", "orders-0"), 1, "verdict"),
    "configs": (("configs", "LOG_DIR"), 1, "topic"),
    "inspect": (("inspect", "LOG_DIR"), 1, "record_bytes"),
    "doctor": (("doctor", "LOG_DIR"), None, "advice"),
    "verify": (("verify", "LOG_DIR"), 0, "problem"),
    "report": (("report", "FILE"), 1, "exit_code"),
}


@pytest.fixture
def words(
    request: pytest.FixtureRequest, log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """The words of a command, for directories and files that are there."""
    wanted, _, _ = COMMANDS[request.param]
    places = {"LOG_DIR": str(log_dir)}
    if "KEPT_RUN" in wanted:
        local: LocalRound = request.getfixturevalue("local")
        kept = Kept(local, merged(tmp_path / "logs"))
        kept.run()
        places["KEPT_RUN"] = str(kept.run_dir)
    else:
        use_local_rounds(monkeypatch, tmp_path / "work")
    if "FILE" in wanted:
        places["FILE"] = str(tmp_path / "plan.json")
        assert run_command("plan", log_dir, "--report", places["FILE"]).code == 0
    return [places.get(word, word) for word in wanted]


FORMS = [f"r{extension}" for extension in EXTENSIONS]


@pytest.mark.parametrize("words", COMMANDS, indirect=True)
def test_one_command_writes_a_report_in_each_form(words: list[str], tmp_path: Path) -> None:
    paths = [tmp_path / name for name in FORMS]
    ended = run_command(*words, *(word for path in paths for word in ("--report", path)))
    assert ended.code in (0, 1, 4), ended.error
    begins = [b'{\n  "schema_version"', b"<!doctype html>", b'"', b"PAR1"]
    for path, begin in zip(paths, begins, strict=True):
        assert path.read_bytes().startswith(begin), path
    assert json.loads(paths[0].read_bytes())["exit_code"] == ended.code


def test_two_reports_of_one_form_are_refused_before_anything_is_done(
    log_dir: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.JSON"
    html = tmp_path / "a.html"
    words = [word for path in (first, html, second) for word in ("--report", path)]
    ended = run_command("plan", log_dir, *RULES, *words)
    assert ended.code == 2
    problem = f"--report {second}: a second .json report, beside {first}; a run writes one of each"
    assert problem in ended.error
    assert not any(path.exists() for path in (first, html, second))


def test_a_report_that_cannot_be_written_leaves_the_others(
    log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, document: JsonObject) -> None:
        if path.endswith(".html"):
            raise OSError(28, "No space left on device", path)
        write_report(path, document)

    monkeypatch.setattr("compactor.command_line.cli.write_report", refuse)
    html, csv_file = tmp_path / "a.html", tmp_path / "a.csv"
    ended = run_command("plan", log_dir, *RULES, "--report", html, "--report", csv_file)
    assert ended.code == 1
    assert f"The report {html} was not written; the command itself has ended." in ended.error
    assert (html.exists(), csv_file.exists()) == (False, True)
    assert ended.summary["reason_code"] == "report-not-written"


def test_every_command_with_a_report_is_here() -> None:
    having = {
        name
        for name, command in app.commands.items()
        if any("--report" in parameter.opts for parameter in command.params)
    }
    assert having == set(COMMANDS)


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize(
    ("words", "command"), [(name, name) for name in COMMANDS], indirect=["words"]
)
def test_a_report(words: list[str], command: str, tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"report{extension}"
    ended = run_command(*words, "--report", path)
    assert "internal error" not in ended.error
    assert ended.code in ((0, 4) if command == "doctor" else (0,)), ended.error
    _, rows, column = COMMANDS[command]
    if extension == ".json":
        assert json.loads(path.read_text())["command"] == command
    elif extension == ".html":
        assert "<h1" in path.read_text()
    else:
        columns, found = _table(path)
        assert columns[:2] == ["run_id", "command"]
        assert column in columns
        assert len(set(columns)) == len(columns) and not _said_twice(columns)
        assert found == rows or (rows is None and found > 5)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_report_of_findings(log_dir: Path, tmp_path: Path, extension: str) -> None:
    path = log_dir / "orders-0" / "00000000000000000015.log"
    path.write_bytes(path.read_bytes()[:-1])
    report = tmp_path / f"report{extension}"
    assert run_command("verify", log_dir, "--report", report).code == 4
    assert str(path) in report.read_text() if extension in (".json", ".csv") else report.stat()


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_columns_do_not_depend_on_whether_there_are_rows(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that ends with an error has the header line, and no row."""
    path = tmp_path / "report.csv"
    wanted, _, column = COMMANDS[command]
    words = [str(tmp_path / "none") if word.isupper() else word for word in wanted]
    if command == "doctor":
        words.append("--start-spark")
        monkeypatch.setattr("compactor.api.doctor", _fail)
    assert run_command(*words, "--report", path).code != 0
    columns, found = _table(path)
    assert (columns[:2], found) == (["run_id", "command"], 0)
    assert column in columns or column.startswith("records_")


def _said_twice(columns: list[str]) -> list[str]:
    """Names such as keys_keys."""
    return [name for name in columns if re.search(r"(^|_)([a-z]+)_\2(_|$)", name)]


def _fail(*_: object) -> None:
    raise OSError("nothing is there")


def _table(path: Path) -> tuple[list[str], int]:
    if path.suffix == ".parquet":
        table = pyarrow.parquet.read_table(path)
        return table.column_names, table.num_rows
    with open(path, newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file)
    return header, len(lines)
