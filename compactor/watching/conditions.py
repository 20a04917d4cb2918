"""Conditions on the numbers of a plan or a run: `--fail-if 'max_dirty_ratio > 0.8'`. Pure.

    condition    comparisons, joined by `and`
    comparison   names and numbers, and < <= > >= == != between them: `dirty_ratio > 0.8`
    name         a measure of each log, or of all logs (`compactor.watching.measures`)
    number       12, 0.8, -1, 1e9, 500_000_000

A name of each log makes the condition one on each log by itself: it holds if it holds for any of
them. A comparison with what is not known of a log does not hold.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise
from typing import NamedTuple

from compactor.errors import UsageError
from compactor.outcome.json_values import FLAT
from compactor.watching.measures import LogMeasures, Measures, names_of_totals

_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_NAME = r"[A-Za-z_]\w*"
_NUMBER = r"-?(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_OPERATOR = r"[<>]=?|[=!]="
_OPERAND = f"{_NAME}|{_NUMBER}"
_COMPARISON = re.compile(rf"(?:{_OPERAND})(?:\s*(?:{_OPERATOR})\s*(?:{_OPERAND}))+", re.ASCII)
_Values = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Concerned:
    """A log for which a condition holds, and the numbers of it that the condition names."""

    log: LogMeasures = field(metadata=FLAT)
    values: _Values


class Met(NamedTuple):
    """A condition that holds, and the logs because of which it does."""

    condition: str
    logs: tuple[Concerned, ...]  # none where it is about sums alone


class _Comparison(NamedTuple):
    """`0.4 < dirty_ratio < 0.6`: two operators between three operands."""

    operands: tuple[str | float, ...]
    operators: tuple[str, ...]

    def names(self) -> set[str]:
        return {operand for operand in self.operands if isinstance(operand, str)}

    def holds(self, values: _Values) -> bool:
        """Whether it holds; not if a name in it has no value."""
        if not self.names() <= values.keys():
            return False
        numbers = (values[each] if isinstance(each, str) else each for each in self.operands)
        pairs = zip(self.operators, pairwise(numbers), strict=True)
        return all(_OPERATORS[name](left, right) for name, (left, right) in pairs)


class Condition:
    """A condition, checked against the known names."""

    def __init__(self, text: str, names: Iterable[str]) -> None:
        """names: the measures of a log. Raise UsageError where the text is no condition on them."""
        names = tuple(names)
        totals = names_of_totals(names)
        self.text = text
        self._comparisons = _parsed(text)
        used = {name for each in self._comparisons for name in each.names()}
        for name in sorted(used):
            if name not in names and name not in totals:
                raise UsageError(_unknown(name, (*names, *totals)), "fail_if", text)
        self._of_logs = tuple(name for name in names if name in used)
        self._of_all = tuple(name for name in totals if name in used)

    def holds(self, measures: Measures) -> bool:
        """Whether it does: of any log, if it names a measure of logs."""
        if self._of_logs:
            return any(True for _ in self._of_each(measures))
        return self._all_hold(measures.totals)

    def concerned(self, measures: Measures) -> list[Concerned]:
        """The logs because of which it holds; none where it does not, or is about sums alone."""
        if self._of_logs:
            return list(self._of_each(measures))
        if not self.holds(measures):
            return []
        return [
            Concerned(log, {name: log.values[name] for name in self._greatest(log)})
            for log in measures.logs
            if log.counted_as in self._of_all or self._is_beyond(log, measures)
        ]

    def _all_hold(self, values: _Values) -> bool:
        return all(each.holds(values) for each in self._comparisons)

    def _of_each(self, measures: Measures) -> Iterator[Concerned]:
        for log in measures.logs:
            if self._all_hold({**measures.totals, **log.values}):
                yield Concerned(log, {name: log.values[name] for name in self._known(log)})

    def _known(self, log: LogMeasures) -> list[str]:
        return [name for name in self._of_logs if name in log.values]

    def _greatest(self, log: LogMeasures) -> list[str]:
        """Measures of the log whose greatest value the condition names."""
        return [name for name in log.values if f"max_{name}" in self._of_all]

    def _is_beyond(self, log: LogMeasures, measures: Measures) -> bool:
        """Whether a comparison of greatest values would be true if this log had them."""
        own = {f"max_{name}": log.values[name] for name in self._greatest(log)}
        values = {**measures.totals, **own}
        return any(
            each.holds(values) and not own.keys().isdisjoint(each.names())
            for each in self._comparisons
        )


def _parsed(text: str) -> list[_Comparison]:
    """Read the comparisons; raise UsageError where the text is anything else."""
    return [_comparison(text, part.strip()) for part in re.split(r"\band\b", text)]


def _comparison(text: str, part: str) -> _Comparison:
    words = re.split(rf"\s*({_OPERATOR})\s*", part)
    if _COMPARISON.fullmatch(part):
        names = re.compile(_NAME)
        operands = tuple(word if names.match(word) else float(word) for word in words[::2])
        if math.inf not in (abs(each) for each in operands if isinstance(each, float)):
            return _Comparison(operands, tuple(words[1::2]))
    raise UsageError(
        f"{part or 'nothing'} is no comparison; "
        "expected something like 'dirty_ratio > 0.8 and dirty_bytes > 1e9'",
        "fail_if",
        text,
    )


def _unknown(name: str, known: tuple[str, ...]) -> str:
    similar = get_close_matches(name, known, n=1)
    hint = f"did you mean {similar[0]}?" if similar else f"there are {', '.join(sorted(known))}"
    return f"there is no {name}; {hint}"
