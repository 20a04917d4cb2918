"""Messages are English, also of one thing: `1 log was`, `2 directories`, `offset 5`.

The list is made from the source: every text with a value in it that is no docstring.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest

from tests.product_source import nodes

VALUE = "{}"
NUMBER = "{n}"
COUNTS = {"records", "count", "segments", "batches", "logs", "entries", "runs"}
COUNTS |= {"partitions", "headers", "records_count"}
NOT_WITH_AN_S = re.compile(r"([^aeiou]y|s|x|ch|sh)$")
WRONG_PLURAL = re.compile(r"\b\w*(directory|entry|copy|category|batch|index|boundary)s\b", re.I)
# not of bytes, and not of `3 of 5 topics`
OF_MANY = re.compile(
    "(?<!of )" + re.escape(NUMBER) + r" (?!bytes)(?:more )?(?:[a-z]+s|were|are|have|do|go)\b"
)
RANGE = re.compile(r"\boffsets \{n?\} to \{n?\}")
# where the number is never 1, or no number of things
NEVER_ONE = frozenset(
    {
        "--against {}: is a copy of one log directory, and {n} were given ({}); compare each by "
        "itself",
        "--against {}: compares one TOPIC-PARTITION, or all of them, and {n} were given ({})",
        "no more than {n} files may be open at once (ulimit -n), and a run with Spark needs {n}",
        "{n} of its {n} topics",
        "  {}: {n} becomes {n}",  # an offset
        "{n} batches",
        "{n} logs",
        "see the {n} lines with fail",
        "{n} segments go",
        "{n} records, which are",
        "offsets {} to {}",
    }
)


class Message(NamedTuple):
    path: str
    line: int
    text: str


def _is_number(value: ast.FormattedValue) -> bool:
    spec = value.format_spec
    has_commas = isinstance(spec, ast.JoinedStr) and any(
        isinstance(part, ast.Constant) and "," in str(part.value) for part in spec.values
    )
    named = value.value
    name = named.id if isinstance(named, ast.Name) else getattr(named, "attr", None)
    return (
        has_commas
        or name in COUNTS
        or (
            isinstance(value.value, ast.Call)
            and isinstance(value.value.func, ast.Name)
            and value.value.func.id == "len"
        )
    )


def messages() -> Iterator[Message]:
    for path, node in nodes():
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                (NUMBER if _is_number(part) else VALUE)
                if isinstance(part, ast.FormattedValue)
                else str(part.value)
                for part in node.values
                if isinstance(part, ast.FormattedValue | ast.Constant)
            )
            yield Message(path, node.lineno, text)


@cache
def every() -> list[Message]:
    """Return all messages; not while tests are collected, which each process does."""
    return [*messages()]


def test_the_list_has_messages() -> None:
    assert len(every()) > 1000


@pytest.mark.parametrize(
    ("pattern", "instead"),
    [
        (OF_MANY, "printable.counted, or words that fit one thing and many"),
        (RANGE, "printable.offset_range"),
        (WRONG_PLURAL, "the plural"),
    ],
    ids=["number", "range", "plural"],
)
def test_words_fit_one_and_many(pattern: re.Pattern[str], instead: str) -> None:
    wrong = [each for each in every() if pattern.search(each.text) and each.text not in NEVER_ONE]
    assert wrong == [], instead


def test_counted_has_the_plural_of_its_noun() -> None:
    nouns = [
        (path, node.lineno, str(node.args[1].value))
        for path, node in nodes()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "counted"
        and len(node.args) == 2
        and isinstance(node.args[1], ast.Constant)
    ]
    assert len(nouns) > 20
    assert [each for each in nouns if NOT_WITH_AN_S.search(each[2])] == []
