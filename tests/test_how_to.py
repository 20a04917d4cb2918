"""Every command on a how-to page is one that the command line takes; nothing is carried out."""

import shlex
from pathlib import Path

import pytest

from compactor.command_line.command import Request
from compactor.command_line.commands import app
from compactor.command_line.parser import parse

PAGES = sorted((Path(__file__).parents[1] / "docs" / "how-to").glob("*.md"))
KAFKAS = {"kafka-transactions.sh", "kafka-configs.sh"}


def commands(page: Path) -> list[list[str]]:
    """The words of each line that is set apart by four blanks."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return [shlex.split(line) for line in lines if line.startswith("    ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_are_taken(page: Path) -> None:
    for words in commands(page):
        program, *given = words
        if program in KAFKAS:
            continue
        if program == "spark-submit":
            given = given[given.index("$(compactor --entry-file)") + 1 :]
        else:
            assert program == "compactor", words
        asked = parse(app, given)
        assert isinstance(asked, Request), words


def test_each_page_is_named_on_the_first_one() -> None:
    (first,) = (page for page in PAGES if page.name == "README.md")
    text = first.read_text(encoding="utf-8")
    others = [page for page in PAGES if page is not first]
    assert len(others) == 7
    assert all(f"({page.name})" in text and commands(page) for page in others)
