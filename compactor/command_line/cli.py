"""The command line: words in, exit code out, and what it says when something goes wrong.

typer turns the words into a Request and does nothing else (`commands.py`); `main` carries it out,
so that every error passes through one place. Only light modules are imported before a command
begins.
"""

import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import typer

from compactor import account
from compactor.command_line.carry_out import NOTHING_CHANGED, carry_out, complain
from compactor.command_line.commands import app
from compactor.command_line.completion import begin_if_asked
from compactor.command_line.interrupts import SignalNotes
from compactor.command_line.requests import Request
from compactor.exit_codes import ExitCode, ending_of_error, error_line
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
from compactor.reason_codes import ReasonCode
from compactor.views.ending import with_ending
from compactor.views.report_json import summary, to_line

COMMANDS = (
    "plan",
    "run",
    "recover",
    "undo",
    "explain",
    "configs",
    "inspect",
    "doctor",
    "report",
    "dump",
    "verify",
    "log",
)
_ClickUsageError: type[Exception] = typer.BadParameter.__bases__[0]  # newer typers bring their own
_AFTER_MISSING = {
    "LOG_DIR": "the broker's log directory, as log.dirs in its server.properties names it",
    "TOPIC-PARTITION": "the log, like orders-0",
    "RUN_DIR": "the run's own directory, DIR/RUN_ID of --keep-originals DIR",
    "PATH": "a file of a log directory, or a partition",
    "FILE": "a report, as --report FILE.json writes it",
    "TO_DIR": "the log directory of this broker that the log is to go to",
}
_LIMITS = (
    (re.compile(r"Input should be greater than or equal to (\S+)"), r"expected \1 or more"),
    (re.compile(r"Input should be less than or equal to (\S+)"), r"expected \1 or less"),
    (re.compile(r"Input should be a valid integer.*"), "expected a whole number"),
    (re.compile(r"Input should be a valid number.*"), "expected a number"),
    (re.compile(r"Input should be a valid \w+.*"), "expected another kind of value"),
)


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
    parsed: Request | int | None = None
    try:
        with standard_output(), unpadded():  # typer prints help by itself
            parsed = _parse(words or ["--help"])
    except _ClickUsageError as error:
        return _end_of_usage_error(words, error)
    if isinstance(parsed, Request):
        return carry_out(parsed, signals)
    interrupt = signals.received()  # which typer makes an exit code of
    if interrupt is not None:
        complain(error_line(interrupt), NOTHING_CHANGED)
        return ending_of_error(interrupt).exit_code
    return ExitCode.OK if words else ExitCode.USAGE  # help or version was shown


def _parse(words: list[str]) -> Request | int | None:
    begin_if_asked(os.environ)
    parsed: Any = typer.main.get_command(app)(words, prog_name="compactor", standalone_mode=False)
    assert parsed is None or isinstance(parsed, Request | int), parsed
    return parsed


def _end_of_usage_error(words: list[str], error: Exception) -> int:
    message = usage_message(error)
    if words[:1] == ["explain"] and "/" in words[-1]:  # its last word is taken for that of a log
        message = message.replace(_missing("LOG_DIR"), _missing("TOPIC-PARTITION"))
    command = next((word for word in words if not word.startswith("-")), "compactor")
    known = command in COMMANDS
    context = getattr(error, "ctx", None)  # knows of commands within commands
    asked = (
        f"compactor{f' {command}' if known else ''}" if context is None else context.command_path
    )
    complain(message, f"{NOTHING_CHANGED} See: {asked} --help")
    if known and not sys.stdout.isatty():
        told = summary(command, ExitCode.USAGE, message, ReasonCode.WRONG_USAGE)
        with account.opened() as ended:
            print_line(to_line(with_ending(told, ended)))
    return ExitCode.USAGE


def usage_message(error: Exception) -> str:
    """One line without a full stop."""
    text = one_line(str(getattr(error, "format_message", error.__str__)())).rstrip(".")
    text = text.replace("Value error, ", "")
    for pattern, ours in _LIMITS:
        text = pattern.sub(ours, text)
    text = re.sub(r" \(Possible options: ([^)]*)\)", _similar_options, text)
    text = re.sub(r"\. Did you mean (.*)\?", _similar_commands, text)
    text = re.sub(
        r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", r"too many words: \1", text
    )
    missing = re.fullmatch(r"(?:Invalid value: )?Missing argument '([A-Z_-]+)[^']*'", text)
    if missing and missing[1] in _AFTER_MISSING:
        text = _missing(missing[1])
    return text or "a command is missing"


def _missing(argument: str) -> str:
    return f"{argument} is missing: {_AFTER_MISSING[argument]}"


def _similar_options(found: re.Match[str]) -> str:
    return f"; did you mean {' or '.join(found[1].split(', '))}?"


def _similar_commands(found: re.Match[str]) -> str:
    names = (name.strip("'") for name in found[1].split(", "))
    return f"; did you mean {' or '.join(names)}?"
