"""What carries a command out, loaded when it begins."""

from collections.abc import Callable
from importlib import import_module
from typing import cast

from compactor.command_line.requests import Result


def begin(command: str, wanted: object) -> Callable[[], Result | None]:
    """What carries a command out. Its module, and all that it needs, is loaded when it begins."""
    module = f"compactor.command_line.{command}_command"
    return lambda: cast(Result | None, import_module(module).result_of(wanted))
