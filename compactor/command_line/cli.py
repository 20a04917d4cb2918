"""The command line: words in, exit code out, and what it says when something goes wrong.

The parser turns the words into a Request and does nothing else (`commands.py`); `main` carries it
out, so that every error passes through one place. Only light modules are imported before a command
begins.
"""

import os
import sys
from collections.abc import Sequence

import click

from compactor.command_context import open_context
from compactor.command_line.carry_out import NOTHING_CHANGED, carry_out, complain
from compactor.command_line.command import Request
from compactor.command_line.commands import app
from compactor.command_line.completion import VARIABLE
from compactor.command_line.interrupts import SignalNotes
from compactor.command_line.parser import parse, usage_message
from compactor.host import descriptor_limit
from compactor.host.log_lines import log_format_of, written_as
from compactor.host.output import (
    forgive_encodings,
    open_standard_streams,
    output_problem,
    print_line,
    standard_output,
    unpadded,
)
from compactor.host.printable import one_line
from compactor.host.shell_commands import given_by_nobody
from compactor.outcome.exit_codes import ExitCode, ending_of_error, error_line
from compactor.reason_codes import ReasonCode
from compactor.views.ending import with_ending
from compactor.views.report_json import summary, to_line

COMMANDS = tuple(app.commands)


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out the words of the command line; the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    open_standard_streams()
    forgive_encodings()
    descriptor_limit.raise_limit()
    with written_as(log_format_of(words)), given_by_nobody():
        with SignalNotes() as signals:
            code = _carry_out(words, signals)
        problem = output_problem()
        if problem is None:
            return code
        complain(f"standard output: {problem.strerror}", "The command itself has ended.")
        return code or ExitCode.FAILED


def _carry_out(words: list[str], signals: SignalNotes) -> int:
    try:
        if VARIABLE in os.environ:
            from click.shell_completion import shell_complete  # needed by a shell alone

            return shell_complete(app, {}, "compactor", VARIABLE, os.environ[VARIABLE])
        with standard_output(), unpadded():  # a help is printed by the parser
            parsed = parse(app, words or ["--help"])
    except click.UsageError as error:
        return _end_of_usage_error(words, error)
    except KeyboardInterrupt as error:
        interrupt = signals.received() or error
        complain(error_line(interrupt), NOTHING_CHANGED)
        return ending_of_error(interrupt).exit_code
    if isinstance(parsed, Request):
        return carry_out(parsed, signals)
    return ExitCode.OK if words else ExitCode.USAGE  # help or version was shown


def _end_of_usage_error(words: list[str], error: click.UsageError) -> int:
    message = one_line(usage_message(error, words)).rstrip(".")
    command = next((word for word in words if not word.startswith("-")), "compactor")
    known = command in COMMANDS
    complain(message, f"{NOTHING_CHANGED} See: {_asked(error)} --help")
    if known and not sys.stdout.isatty():
        told = summary(command, ExitCode.USAGE, message, ReasonCode.WRONG_USAGE)
        with open_context() as ended:
            print_line(to_line(with_ending(told, ended)))
    return ExitCode.USAGE


def _asked(error: click.UsageError) -> str:
    return "compactor" if error.ctx is None else error.ctx.command_path
