"""The reports that the operator asks for: those that are wanted, and one that it reads itself."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compactor.test_airflow_folder import LOADED

EXECUTED = """
import json
given = json.loads(sys.stdin.read())
class Noted(airflow.CompactorOperator):
    def _run(self, words):
        print(json.dumps(words))
        paths = [after for word, after in zip(words, words[1:]) if word == "--report"]
        for path in paths:
            with open(path, "w") as file:
                bad = {"topic": "t", "partition": 0, "status": "failed", "reason": "no room"}
                file.write(json.dumps({"logs": [bad]}) if path.endswith(".json") else "page")
        return 4, {}
try:
    Noted(log_dirs="/data", command=given["command"], report=given["report"]).execute({})
except Exception as error:
    print(json.dumps(str(error)))
"""


def executed(report: object, command: str = "run") -> tuple[list[str], str]:
    """The files that the command is told to write, and the error of the task."""
    ended = subprocess.run(
        [sys.executable, "-c", LOADED + EXECUTED],
        input=json.dumps({"report": report, "command": command}),
        capture_output=True,
        text=True,
        check=True,
    )
    words, error = map(json.loads, ended.stdout.splitlines())
    pairs = itertools.pairwise(words)
    return [after for word, after in pairs if word == "--report"], error


@pytest.mark.parametrize(
    ("names", "own"),
    [([], 1), (["a.html"], 1), (["a.html", "a.csv"], 1), (["a.html", "a.JSON"], 0)],
)
def test_one_report_is_json_and_names_the_logs(names: list[str], own: int, tmp_path: Path) -> None:
    wanted = [str(tmp_path / name) for name in names]
    reports, _ = executed(wanted)
    assert reports[: len(wanted)] == wanted
    assert len(reports) == len(wanted) + own
    assert len([path for path in reports if path.lower().endswith(".json")]) == 1


def test_a_page_alone_does_not_hide_the_logs(tmp_path: Path) -> None:
    reports, error = executed(str(tmp_path / "a.html"))
    assert reports[0] == str(tmp_path / "a.html")
    assert "t-0 failed: no room" in error


def test_a_command_without_a_report_gets_none() -> None:
    assert executed(None, "log read")[0] == []
