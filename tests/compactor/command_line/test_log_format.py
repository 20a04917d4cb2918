"""--log-format json: standard error gets one JSON object a line, with the events of text."""

import json
import re
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from compactor.host import log_lines
from compactor.host.log_lines import LogFormat, log_format_of
from compactor.host.progress import PlainProgress, open_progress
from tests.compactor.command_line.test_endings import ENDINGS, RUN, Prepare
from tests.support.local_command import Ended, run_command

pytestmark = pytest.mark.usefixtures("without_spark")

FIELDS = ["time", "level", "run_id", "phase", "log", "message"]
OF_STAGES = ["done", "total", "seconds"]
PREFIXES = {"info": "", "warning": "compactor: warning: ", "error": "compactor: "}


def said(ended: Ended) -> list[dict[str, Any]]:
    """What standard error got; every line of it is an object with these fields, in this order."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in ended.error.splitlines()]
    for line in lines:
        assert list(line) in (FIELDS, FIELDS + OF_STAGES), line
        assert datetime.fromisoformat(line["time"]).utcoffset() is not None
    return lines


def timeless(lines: list[str]) -> list[str]:
    """Without what differs from one run to the next: seconds, and lines that wait for ten."""
    return [re.sub(r"[\d.]+ s\b", "N s", line) for line in lines if " after " not in line]


@pytest.mark.parametrize(("words", "prepare"), [ending[:2] for ending in ENDINGS])
def test_the_events_are_those_of_text(log_dir: Path, words: str, prepare: Prepare) -> None:
    prepare(log_dir)
    kept = log_dir.parent / "kept"
    shutil.copytree(log_dir, kept)
    of_text = run_command(*words.replace("D", str(log_dir)).split())
    shutil.rmtree(log_dir)
    kept.rename(log_dir)
    of_json = run_command(*words.replace("D", str(log_dir)).split(), "--log-format", "json")
    assert of_json.code == of_text.code
    lines = [PREFIXES[line["level"]] + line["message"] for line in said(of_json)]
    assert timeless(lines) == timeless(of_text.error.splitlines())


def test_a_run_says_in_which_phase_it_is_and_of_which_log_it_speaks(log_dir: Path) -> None:
    path = min((log_dir / "orders-0").glob("*.log"))
    path.write_bytes(path.read_bytes()[:-5] + b"wrong")
    ended = run_command("run", log_dir, *RUN, "--log-format=json")
    lines = said(ended)
    assert {line["run_id"] for line in lines} == {ended.summary["run_id"]}
    [warning] = [line for line in lines if line["level"] == "warning"]
    assert (warning["log"], warning["phase"]) == ("orders-0", "scan")
    assert "orders-0: set aside: " in warning["message"] and str(path) in warning["message"]
    [scan] = [line for line in lines if line["message"].startswith("scan: done")]
    assert (scan["level"], scan["phase"], scan["log"]) == ("info", "scan", None)
    assert scan["done"] == scan["total"] > 0 and scan["seconds"] >= 0


def test_an_error_says_in_which_phase_it_came(log_dir: Path) -> None:
    path = min((log_dir / "orders-0").glob("*.log"))
    path.write_bytes(path.read_bytes()[:-5] + b"wrong")
    words = (*RUN, "--on-corrupt", "fail", "--log-format", "json")
    ended = run_command("run", log_dir, *words)
    assert ended.code == 1
    last = said(ended)[-1]
    assert last["level"] == "error" and last["message"].endswith("Nothing was changed.")
    assert last["phase"] is not None


def test_a_usage_error_has_the_form_that_was_asked_for_and_no_run() -> None:
    for words in (("--log-format", "json"), ("--log-format=json",)):
        [line] = said(run_command("plan", "--no-such-option", *words))
        assert (line["level"], line["run_id"]) == ("error", None)
    assert not run_command("plan", "--no-such-option").error.startswith("{")
    refused = run_command("plan", "/", "--log-format", "xml")
    assert refused.code == 2 and "'xml' is not one of 'text', 'json'" in refused.error


def test_a_traceback_is_one_line(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("boom")

    monkeypatch.setattr("compactor.api.plan", broken)
    ended = run_command("plan", log_dir, "--debug", "--log-format", "json")
    first, last = said(ended)
    assert first["message"].startswith("Traceback") and first["message"].endswith(": boom")
    assert "internal error" in last["message"]


def test_quiet_gives_on_what_it_held_back_as_it_was() -> None:
    [line] = said(run_command("plan", "/nowhere", "--quiet", "--log-format", "json"))
    assert "No such file or directory" in line["message"]


def test_a_terminal_gets_lines_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/null", "w") as stream:
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
        with log_lines.lines_written_as(LogFormat.JSON), open_progress(stream) as progress:
            assert isinstance(progress, PlainProgress)


def test_the_form_is_that_of_the_option_alone() -> None:
    assert log_format_of(["run", "D", "--log-format", "json"]) is LogFormat.JSON
    assert log_format_of(["run", "D", "--format", "json"]) is LogFormat.TEXT
    assert log_format_of(["run", "D", "--log-format", "text", "json"]) is LogFormat.TEXT
