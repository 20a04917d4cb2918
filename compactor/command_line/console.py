"""Tables on standard output. rich is imported when there is one to show."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from compactor.host.output import standard_output

if TYPE_CHECKING:
    from rich.console import RenderableType

PIPE_WIDTH = 120  # columns where standard output is no terminal: a log file or a mail


def show(view: "Callable[[int], RenderableType]") -> None:
    """Show what fits a width, in columns."""
    from rich.console import Console

    with standard_output() as out:
        width = None if out.isatty() else PIPE_WIDTH
        console = Console(file=out, width=width, highlight=False, markup=False)
        console.print(view(console.width))
