"""Transcripts held against each other, line by line: the first difference, and what led to it."""

import json
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import zip_longest
from typing import Any, NamedTuple

Json = Any
SHOWN = 12  # differing values of a line
BEFORE = 3  # lines before it
ABSENT = object()
# of what was resolved where the script has a description, the bytes say nothing
AS_BYTES = ("resolved", "resolved.*")


class Difference(NamedTuple):
    """Two values that ought to be one."""

    path: str
    expected: object
    actual: object


def differences(expected: Json, actual: Json, path: str = "") -> Iterator[Difference]:
    """Yield all that differs. The order of an object's keys does not matter."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(k for k in actual if k not in expected)]:
            name = f"{path}.{key}" if path else key
            yield from differences(expected.get(key, ABSENT), actual.get(key, ABSENT), name)
    elif isinstance(expected, list) and isinstance(actual, list):
        for i, pair in enumerate(zip_longest(expected, actual, fillvalue=ABSENT)):
            yield from differences(*pair, f"{path}[{i}]")
    elif type(expected) is not type(actual) or expected != actual:
        yield Difference(path, expected, actual)


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def first_difference(
    expected: Sequence[dict[str, Any]],
    actual: Sequence[dict[str, Any]],
    ignored: Sequence[str] = (),
) -> str | None:
    """Describe it; None where there is none. ignored: patterns of paths, as `resolved.*`."""
    after_hide = False
    for number, (left, right) in enumerate(zip_longest(expected, actual)):
        if left is None or right is None:
            return f"{len(actual)} lines, expected {len(expected)}"
        patterns = [*ignored, "cause"] if after_hide else ignored
        found = [
            each
            for each in differences(left, right)
            if not any(fnmatchcase(_plain(each.path), pattern) for pattern in patterns)
        ]
        if found:
            return _described(left, found, expected[max(0, number - BEFORE) : number])
        after_hide = after_hide or left["op"] == "hide"  # from then on causes are Java's own
    return None


def _described(
    line: dict[str, Any], found: Sequence[Difference], before: Sequence[dict[str, Any]]
) -> str:
    told = [f"line {line.get('n')}, {line.get('op')}: {len(found)} values differ"]
    told += [
        f"  {path}: expected {_shown(expected)}, found {_shown(actual)}"
        for path, expected, actual in found[:SHOWN]
    ]
    told += ["before it:", *(f"  {_brief(each)}" for each in before)]
    return "\n".join(told)


def _shown(value: object) -> str:
    text = "nothing" if value is ABSENT else json.dumps(value)
    return text if len(text) <= 160 else f"{text[:157]}…"


def _brief(line: dict[str, Any]) -> str:
    outcome = line.get("error") or _shown(line.get("result"))
    return f"{line.get('n')}: {line.get('op')} -> {outcome}"


def _plain(path: str) -> str:
    """With dots only: what a pattern is held against."""
    return re.sub(r"\[(\d+)\]", r".\1", path)
