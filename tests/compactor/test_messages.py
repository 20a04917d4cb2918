"""Every message of the three packages, in one list made from their source, against a few rules."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_NOT_WITH_AN_S = re.compile(r"([^aeiou]y|s|x|ch|sh)$")
_WRONG = re.compile(
    r"\bdirectorys\b|\bentrys\b|\bcopys\b|\bindexs\b|\bbatchs\b|<class '|\b1 logs\b"
)


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """Every node of the source, and where it stands."""
    for package in ("compactor", "cleaner_jobs", "storage"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                yield f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}", node


def messages() -> Iterator[tuple[str, str]]:
    """Every text, with {} where a value comes in."""
    for where, node in nodes():
        if isinstance(node, ast.JoinedStr):
            parts = (n.value if isinstance(n, ast.Constant) else "{}" for n in node.values)
            yield where, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield where, node.value


def test_no_message_has_a_plural_that_is_none() -> None:
    found = list(messages())
    assert len(found) > 5000
    assert [(where, text) for where, text in found if _WRONG.search(text)] == []


def test_counted_is_told_a_plural_that_is_more_than_an_s() -> None:
    nouns = [
        (where, node.args[1].value)
        for where, node in nodes()
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "counted"
        and len(node.args) == 2
        and isinstance(node.args[1], ast.Constant)
    ]
    assert len(nouns) > 20
    assert [(where, noun) for where, noun in nouns if _NOT_WITH_AN_S.search(str(noun))] == []


@pytest.mark.parametrize("noun", ["directory", "entry", "batch", "index", "process"])
def test_the_rule_of_the_plural(noun: str) -> None:
    assert _NOT_WITH_AN_S.search(noun) and not _NOT_WITH_AN_S.search("key")
