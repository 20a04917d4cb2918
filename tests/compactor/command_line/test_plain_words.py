"""Values that are taken as they stand are those that typer would have made; others go its way."""

from typing import Any

import pytest

from compactor.command_line import cli, commands, given_once
from compactor.command_line.requests import Request


@pytest.fixture(autouse=True)
def _what_is_asked_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "begin", lambda command, wanted: (command, wanted))


def parsed(words: list[str]) -> Any:
    """What is asked for, or what is wrong with the words."""
    try:
        return cli._parse(words)
    except cli._ClickUsageError as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    ("words", "is_sound"),
    [
        (["plan", "/a"], True),
        (["plan", "/a", "/b", "--set", "x=1", "--set", "y=", "--as-of", "5", "--all"], True),
        (["plan", "/a", "--order", "smallest", "--top", "7", "--format", "json"], True),
        (["run", "/a", "--set", "ä=ö", "--wait", "0", "--log-format", "json", "--quiet"], True),
        (["run", "--plan", "saved.json"], True),
        (["run"], False),
        (["plan"], False),
        (["plan", "/a", "--top", "x"], False),
        (["plan", "/a", "--order", "no"], False),
        (["plan", "/a", "--order"], False),
        (["plan", "/a\udcff"], True),  # bytes that are no text, as the system hands them over
        (["plan", "/a", "--include", "\udcff"], True),
        (["plan", "/a", "--log-format", "\udcff"], False),
    ],
)
def test_the_values_are_those_of_typer(
    words: list[str], is_sound: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = parsed(words)
    monkeypatch.setattr(given_once, "take_plain_words", lambda parameters: parameters)
    given_once.log_format_option.cache_clear()
    assert found == parsed(words)
    assert isinstance(found, Request) is is_sound
