"""What reaches a terminal, a pipe, and cron."""

import io
import json
import sys
from pathlib import Path

import pytest

from compactor.command_line import cli
from tests.compactor.plan_logs import Shape, build
from tests.support.local_command import run_command

AT = ("--as-of", "1000", "--any-clock")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    path = tmp_path / "topics.json"
    path.write_text(json.dumps({"t": {"cleanup.policy": "compact"}}))
    return path


@pytest.fixture
def data(tmp_path: Path) -> str:
    return build(tmp_path / "data", Shape("t"))


def test_nothing_is_padded_in_a_pipe_and_the_last_line_is_json(data: str, topics: Path) -> None:
    ended = run_command("plan", data, "--topic-configs", topics, *AT)
    assert all(line == line.rstrip() for line in ended.out.splitlines())
    assert ended.summary["status"] == "ok"


def test_help_is_not_padded_in_a_pipe() -> None:
    shown = run_command("run", "--help").out
    assert "--dry-run" in shown
    assert all(line == line.rstrip() for line in shown.splitlines())


@pytest.mark.parametrize(("words", "is_json"), [((), False), (("--format", "json"), True)])
def test_a_terminal_is_shown_json_only_if_it_is_asked_for(
    data: str,
    topics: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    is_json: bool,
) -> None:
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    assert cli.main(["plan", data, "--topic-configs", str(topics), *AT, *words]) == 0
    assert out.getvalue().splitlines()[-1].startswith("{") is is_json
    assert cli.main(["plan", "/nowhere", *words]) == 2
    assert out.getvalue().splitlines()[-1].startswith("{") is is_json


def test_cron_hears_nothing_of_what_went_well(data: str, topics: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    words = ("--topic-configs", topics, "--report", report, *AT, "--quiet")
    assert run_command("plan", data, *words) == (0, "", "")
    assert json.loads(report.read_text())["status"] == "ok"


def test_cron_hears_of_what_went_wrong_and_of_warnings(data: str, topics: Path) -> None:
    ended = run_command("plan", "/nowhere", "--quiet")
    assert ended.code == ended.summary["exit_code"] == 2
    assert "No such file or directory" in ended.error
    topics.write_text(json.dumps({name: {"cleanup.policy": "compact"} for name in ("t", "gone")}))
    ended = run_command("plan", data, "--topic-configs", topics, *AT, "--quiet")
    assert ended.code == 0
    assert "1 of its 2 topics not here: gone" in ended.out
