"""Tables on standard output. rich is imported when there is one to show."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from compactor.output import discard_output

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PIPE_WIDTH = 120  # columns where standard output is no terminal: a log file or a mail


def show(view: "Callable[[int], RenderableType]") -> None:
    """Show what fits a width, in columns."""
    console = _console()
    try:
        console.print(view(console.width))
    except BrokenPipeError:
        discard_output()


def _console() -> "Console":
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False, markup=False)
