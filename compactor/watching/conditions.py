"""Conditions on the numbers of a plan or a run: `--fail-if 'max_dirty_ratio > 0.8'`. Pure.

    condition   comparisons of names and numbers, joined by `and`, `or`, `not` and parentheses
    name        a measure of each log, or of all logs (`compactor.watching.measures`)
    number      12, 0.8, 1e9, 500_000_000; + - * / between numbers and names

Python's own parser reads it, nothing is evaluated by Python: any other syntax is refused. A name
of each log makes the condition one on each log by itself: it holds if it holds for any of them.
What is not known of a log decides nothing: neither `x > 1` nor `not x > 1` holds of an unknown x.
"""

import ast
import operator
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from compactor.exit_codes import UsageError
from compactor.watching.measures import LogMeasures, Measures, names_of_totals

MAX_LENGTH = 1000  # characters; far below what a parser of nested text can take
_MAX_DEPTH = 50
_TOO_LARGE = 1e300

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ARITHMETIC: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_Values = Mapping[str, float]


class Concerned(NamedTuple):
    """A log for which a condition holds, and the numbers of it that the condition names."""

    log: LogMeasures
    values: _Values


class Met(NamedTuple):
    """A condition that holds, and the logs because of which it does."""

    condition: str
    logs: tuple[Concerned, ...]  # none where it is about sums alone


class Condition:
    """A condition that was read and checked against the names that there are."""

    def __init__(self, text: str, names: Iterable[str]) -> None:
        """names: the measures of a log. Raise UsageError where the text is no condition on them."""
        names = tuple(names)
        totals = names_of_totals(names)
        self.text = text
        self._tree = _parsed(text)
        _check(self._tree, text)
        used = _names(self._tree)
        for name in sorted(used):
            if name not in names and name not in totals:
                raise UsageError(_unknown(text, name, (*names, *totals)))
        self._of_logs = tuple(name for name in names if name in used)
        self._of_all = tuple(name for name in totals if name in used)

    def holds(self, measures: Measures) -> bool:
        """Whether it does: of any log, if it names a measure of logs."""
        if self._of_logs:
            return any(True for _ in self._of_each(measures))
        return _truth(self._tree, measures.totals) is True

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

    def _of_each(self, measures: Measures) -> Iterator[Concerned]:
        for log in measures.logs:
            if _truth(self._tree, {**measures.totals, **log.values}) is True:
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
            _truth(node, values) is True
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Compare) and not own.keys().isdisjoint(_names(node))
        )


def _names(tree: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _parsed(text: str) -> ast.expr:
    if len(text) > MAX_LENGTH:
        raise UsageError(f"--fail-if: a condition has at most {MAX_LENGTH} characters")
    try:
        with warnings.catch_warnings(action="ignore"):  # of Python, about Python's own style
            return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        where = f" at character {error.offset}" if error.offset else ""
        raise UsageError(f"--fail-if {text}: not a condition{where}{_example()}") from None
    except (ValueError, RecursionError, MemoryError):  # a zero byte; brackets without end
        raise UsageError(f"--fail-if {text}: not a condition{_example()}") from None


def _check(tree: ast.expr, text: str) -> None:
    """Refuse whatever is no part of a condition, before any number is known."""
    if not _is_condition(tree):
        raise UsageError(f"--fail-if {text}: compares nothing{_example()}")
    waiting: list[tuple[ast.AST, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > _MAX_DEPTH or not _is_allowed(node):
            column = getattr(node, "col_offset", 0) + 1
            raise UsageError(f"--fail-if {text}: not understood at character {column}{_example()}")
        waiting += [(child, depth + 1) for child in ast.iter_child_nodes(node)]


def _is_allowed(node: ast.AST) -> bool:
    match node:
        case ast.BoolOp():
            return all(_is_condition(value) for value in node.values)
        case ast.UnaryOp(op=ast.Not()):
            return _is_condition(node.operand)
        case ast.UnaryOp(op=ast.USub()):
            return not _is_condition(node.operand)
        case ast.Compare():
            parts = [node.left, *node.comparators]
            return not any(_is_condition(part) for part in parts)
        case ast.BinOp():
            return type(node.op) in _ARITHMETIC and not (
                _is_condition(node.left) or _is_condition(node.right)
            )
        case ast.Constant(value=value):
            return type(value) in (int, float) and abs(value) < _TOO_LARGE  # type: ignore[arg-type]
    parts_of_others = (ast.Name, ast.Load, ast.And, ast.Or, ast.Not, ast.USub)
    return isinstance(node, parts_of_others) or type(node) in {*_COMPARISONS, *_ARITHMETIC}


def _is_condition(node: ast.AST) -> bool:
    """Whether it is true or false, and not a number."""
    is_negation = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return is_negation or isinstance(node, (ast.BoolOp, ast.Compare))


def _truth(node: ast.expr, values: _Values) -> bool | None:
    """None: it cannot be known."""
    match node:
        case ast.BoolOp():
            found = [_truth(value, values) for value in node.values]
            decided = isinstance(node.op, ast.Or)  # one true decides an `or`, one false an `and`
            if decided in found:
                return decided
            return None if None in found else not decided
        case ast.UnaryOp():
            truth = _truth(node.operand, values)
            return None if truth is None else not truth
        case ast.Compare():
            numbers = [_number(part, values) for part in (node.left, *node.comparators)]
            if None in numbers:
                return None
            pairs = zip(numbers, node.ops, numbers[1:], strict=False)
            return all(_COMPARISONS[type(op)](left, right) for left, op, right in pairs)  # type: ignore[arg-type]
    raise AssertionError(node)  # refused by _check


def _number(node: ast.expr, values: _Values) -> float | None:
    """None where a name in it is not known, and for a division by zero."""
    match node:
        case ast.Constant():
            return float(node.value)  # type: ignore[arg-type]
        case ast.Name():
            return values.get(node.id)
        case ast.UnaryOp():
            operand = _number(node.operand, values)
            return None if operand is None else -operand
        case ast.BinOp():
            left, right = _number(node.left, values), _number(node.right, values)
            if left is None or right is None:
                return None
            try:
                return _ARITHMETIC[type(node.op)](left, right)
            except ZeroDivisionError:
                return None
    raise AssertionError(node)  # refused by _check


def _unknown(text: str, name: str, known: tuple[str, ...]) -> str:
    similar = get_close_matches(name, known, n=1)
    hint = f"did you mean {similar[0]}?" if similar else f"there are {', '.join(sorted(known))}"
    return f"--fail-if {text}: there is no {name}; {hint}"


def _example() -> str:
    return "; expected something like 'max_dirty_ratio > 0.8 or set_aside > 0'"
