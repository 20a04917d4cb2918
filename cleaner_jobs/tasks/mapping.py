"""Calls a function for one value of the `map` stage, in a task or in the driver itself.

The task names the function, which is imported where it is called: so tasks do what packages above
this one define, and this package imports none of them.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from cleaner_jobs.messages import MAP, PROBLEM, plain
from cleaner_jobs.problems import problem_of
from cleaner_jobs.source_identity import LogChangedError
from storage.errors import CorruptFileError
from storage.files.files import Disk


class MapContext(NamedTuple):
    """What a function gets beside its value."""

    work_dir: str | None  # for what it writes: the run's own, which goes with it; None: any
    disk: Disk


MappedFunction = Callable[[Any, MapContext], Any]


def function_named(name: str) -> MappedFunction:
    """Return the function that `module:name` names."""
    module, _, of_module = name.partition(":")
    function: MappedFunction = getattr(import_module(module), of_module)
    return function


def map_value(
    name: str, number: int, value: Any, context: MapContext
) -> tuple[str, tuple[Any, ...]]:
    """Call the named function, and return a row: its kind, and number and result, or the problem.

    A problem is one of the log with this number. Whatever else the function raises is a fault of
    this program, and fails the stage.

    Args:
        name: `module:name` of the function.
        number: Of the log that the value is about.
        value: As JSON has it.
        context: What else the function gets.
    """
    try:
        return MAP, (number, plain(function_named(name)(value, context)))
    except (CorruptFileError, LogChangedError, OSError) as error:
        return PROBLEM, problem_of(number, error)
