"""Lets something happen at a point of a run: before an operation on files, or before a call."""

from collections.abc import Callable
from typing import Any

import pytest

from storage.files.local import LOCAL
from tests.support.files.watched import Operation, WatchedFiles

When = Callable[..., bool]


def always(*_: object) -> bool:
    return True


def before_operation(happens: Callable[[], None], name: str, when: When = always) -> WatchedFiles:
    """Files of which an operation comes after it, each time that `when` says yes to its paths."""

    def before(operation: Operation) -> None:
        if operation.name == name and when(*operation.paths):
            happens()

    return WatchedFiles(LOCAL, before)


def before_call(
    happens: Callable[[], None],
    patch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    when: When = always,
) -> None:
    """It comes before each call of a module's function with arguments that `when` says yes to."""
    original = getattr(module, name)

    def call(*arguments: Any, **named: Any) -> Any:
        if when(*arguments):
            happens()
        return original(*arguments, **named)

    patch.setattr(module, name, call)
