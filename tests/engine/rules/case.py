"""A rule of docs/spec/engine.md shown by a script: its lines, and what is seen after them.

What is seen stands in the script behind the line that it is about. It is held against Kafka's
transcript, and the whole of Kafka's transcript against ours.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Line = dict[str, Any]
NOW_MS = 1_700_000_000_000  # where the clock of every script stands at first


@dataclass(frozen=True)
class Seen:
    """Values in the transcript's line of the operation before, by their paths."""

    values: Mapping[str, object]


class Expectation(NamedTuple):
    """The value of a path in a line of the transcript."""

    line: int  # from 0
    path: str
    value: object


class Case:
    """A script, and the rules that it shows."""

    def __init__(self, rules: str, says: str, *steps: Line | Seen) -> None:
        """rules: their numbers, with commas. says: what the script shows, in a few words."""
        self.name = f"{rules}: {says}"
        self.script = [step for step in steps if isinstance(step, dict)]
        self._steps = steps

    def expectations(self) -> Iterator[Expectation]:
        line = -1
        for step in self._steps:
            if isinstance(step, dict):
                line += 1
            else:
                for path, value in step.values.items():
                    yield Expectation(line, path, value)


def value_at(told: Any, path: str) -> Any:
    """What stands at a path as `state.segments.*.base_offset`; a star is each of a list. None
    where there is nothing."""
    head, _, rest = path.partition(".")
    if head == "*":
        return [value_at(each, rest) if rest else each for each in told]
    if told is None:
        return None
    found = told[int(head)] if isinstance(told, list) else told.get(head)
    return value_at(found, rest) if rest else found
