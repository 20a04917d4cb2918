"""`--help`: short enough to be read."""

import re
from typing import Any

import pytest

from compactor.command_line.cli import main
from compactor.command_line.commands import app

COMMANDS: Any = app.commands
PAGES = [
    [],
    *([name] for name in COMMANDS if name != "log"),
    *(["log", name] for name in COMMANDS["log"].commands),
]


@pytest.mark.parametrize("words", PAGES, ids=" ".join)
def test_an_option_takes_at_most_two_lines(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal of 120 columns."""
    monkeypatch.setenv("COLUMNS", "120")
    assert main([*words, "--help"]) == 0
    long = re.findall(
        r"^│[ *]+(--\S+).*\n(?:│[ *]+(?![ *]|--).*\n){2,}", capsys.readouterr().out, re.M
    )
    assert long == []
