"""What a command shows: tables on standard output; warnings and progress on standard error."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, RenderableType

from compactor import api
from compactor.host.log_lines import Level, log_line
from compactor.host.output import print_line, standard_output, unpadded
from compactor.host.printable import printable
from compactor.host.progress import ProgressSink, open_progress

PIPE_WIDTH = 120  # columns where standard output is no terminal: a log file or a mail


def show(view: Callable[[int], RenderableType]) -> None:
    """Show what fits a width, in columns."""
    with standard_output() as out, unpadded():
        width = None if out.isatty() else PIPE_WIDTH
        console = Console(file=sys.stdout, width=width, highlight=False, markup=False)
        console.print(view(console.width), crop=False)  # a command to paste may be longer


def show_lines(lines: Sequence[str]) -> None:
    """Print lines on standard output, each in one line whichever characters a name has."""
    for line in lines:
        print_line(printable(line))


def show_warnings(warnings: Sequence[str]) -> None:
    """Print warnings to standard error, where no table shows them."""
    for warning in warnings:
        log_line(printable(warning), Level.WARNING)


@contextmanager
def shown_progress() -> Iterator[api.OnProgress]:
    """Show how far a call is, on standard error."""
    with open_progress(sys.stderr) as sink:
        yield lambda progress: _show_progress(progress, sink)


def _show_progress(progress: api.Progress, sink: ProgressSink) -> None:
    match progress.event:
        case api.Event.STAGE:
            sink.stage(progress.stage, progress.total)
        case api.Event.ADVANCE:
            sink.advance(progress.done)
        case api.Event.SWAPPED:
            sink.swapped(progress.swapped_groups)
        case api.Event.MESSAGE:
            sink.message(progress.message, progress.log)
