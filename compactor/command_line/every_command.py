"""The option that every command has: the form of what it says on standard error.

It is read from the words themselves before anything else (`host/log_lines.py`), so that a usage
error has that form, too. Here the library learns of it, for the help and to refuse other values.
"""

import functools
from typing import Annotated, Any

import typer

from compactor.command_line.options import OUTPUT
from compactor.host.log_lines import OPTION, LogFormat


@functools.cache
def log_format_option() -> Any:
    """As the library has it: its own way to make one differs from version to version."""
    app = typer.Typer(add_completion=False)
    app.command()(_any_command)
    command: Any = typer.main.get_command(app)
    return command.params[0]


def _any_command(
    log_format: Annotated[
        LogFormat,
        typer.Option(
            OPTION,
            rich_help_panel=OUTPUT,
            expose_value=False,
            help="Progress on standard error: lines of text, or one JSON object a line",
        ),
    ] = LogFormat.TEXT,
) -> None: ...
