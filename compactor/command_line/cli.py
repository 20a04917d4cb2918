"""The command line: words in, exit code out, and what it says when something goes wrong.

The parser turns the words into a Request and does nothing else (`commands.py`); `execute` does what
it asks for, so that every error passes through one place. The last line of standard output is the
summary, unless that is a terminal. Only light modules are imported before a command begins.
"""

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple

import click

from compactor import api
from compactor.command_context import CommandContext, open_context
from compactor.command_line.command import Format, Request, Result
from compactor.command_line.commands import app
from compactor.command_line.console import show_warnings
from compactor.command_line.interrupts import SignalNotes
from compactor.command_line.output_files import (
    atomic_output,
    metrics_file,
    report_files,
    write_report,
)
from compactor.command_line.parser import parse, usage_message
from compactor.command_line.shared_options import VARIABLE
from compactor.host import machine
from compactor.host.log_lines import Level, lines_written_as, log_format_of, log_line, note_run_id
from compactor.host.output import (
    buffered_output,
    forgive_encodings,
    open_standard_streams,
    output_problem,
    print_line,
    silence_libraries,
    standard_output,
    unpadded,
)
from compactor.host.printable import one_line
from compactor.host.shell_commands import typed_options_forgotten
from compactor.outcome.exit_codes import ExitCode, ending_of_error, error_line
from compactor.outcome.json_values import to_json
from compactor.reason_codes import ReasonCode
from compactor.views.ending import configuration_document, with_ending, without_report
from compactor.views.report_json import JsonObject, summary, to_line
from storage.files.local import LOCAL
from storage.gc_pause import collector_paused

COMMANDS = tuple(app.commands)


def main(argv: Sequence[str] | None = None) -> int:
    """Execute the words of the command line; return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    open_standard_streams()
    forgive_encodings()
    machine.raise_open_file_limit()
    with lines_written_as(log_format_of(words)), typed_options_forgotten():
        with SignalNotes() as signals:
            code = _run_words(words, signals)
        problem = output_problem()
        if problem is None:
            return code
        complain(f"standard output: {problem.strerror}", "The command itself has ended.")
        return code or ExitCode.FAILED


def _run_words(words: list[str], signals: SignalNotes) -> int:
    try:
        if VARIABLE in os.environ:
            from click.shell_completion import shell_complete  # needed by a shell alone

            return shell_complete(app, {}, "compactor", VARIABLE, os.environ[VARIABLE])
        # a help is printed by the parser, which loads the module of the command
        with standard_output(), unpadded(), collector_paused():
            parsed = parse(app, words or ["--help"])
    except click.UsageError as error:
        return _end_of_usage_error(words, error)
    except KeyboardInterrupt as error:
        interrupt = signals.received() or error
        complain(error_line(interrupt), NOTHING_CHANGED)
        return ending_of_error(interrupt).exit_code
    if isinstance(parsed, Request):
        return execute(parsed, signals)
    return ExitCode.OK if words else ExitCode.USAGE  # help or version was shown


def _end_of_usage_error(words: list[str], error: click.UsageError) -> int:
    message = one_line(usage_message(error, words)).rstrip(".")
    command = next((word for word in words if not word.startswith("-")), "compactor")
    known = command in COMMANDS
    complain(message, f"{NOTHING_CHANGED} See: {_command_path(error)} --help")
    if known and not sys.stdout.isatty():
        told = summary(command, ExitCode.USAGE, message, ReasonCode.WRONG_USAGE)
        with open_context() as ended:
            print_line(to_line(with_ending(told, ended)))
    return ExitCode.USAGE


def _command_path(error: click.UsageError) -> str:
    return "compactor" if error.ctx is None else error.ctx.command_path


NOTHING_CHANGED = "Nothing was changed."


def execute(request: Request, signals: SignalNotes) -> int:
    """Execute a request; return the exit code."""
    if not request.output.debug:
        silence_libraries()
    with (
        open_context() as context,
        buffered_output() if request.output.quiet else nullcontext() as held,
    ):
        note_run_id(context.run_id)
        ended = _execute(request, signals, context)
        if held is not None:
            held.is_wanted = bool(ended.code) or ended.has_warnings
        return ended.code


class _Ended(NamedTuple):
    code: int
    has_warnings: bool = False  # that a person has to see, though all went well


def _execute(request: Request, signals: SignalNotes, context: CommandContext) -> _Ended:
    reports: tuple[str, ...] = ()
    metrics = None
    try:
        try:
            reports = report_files(request.output.report, context)
            metrics = metrics_file(request.output.metrics)
            result = _result_of(request, bool(reports))
        finally:
            signals.hold()
    except (Exception, KeyboardInterrupt) as error:
        cause = signals.received() or error
        if request.output.debug:
            log_line("".join(traceback.format_exception(error)).rstrip("\n"))
        (code, why), line = ending_of_error(cause), error_line(cause, request.names)
        complain(line, api.what_was_changed(error) or NOTHING_CHANGED)
        if _is_unforeseen(cause) and not request.output.debug:
            log_line("--debug shows where this comes from", Level.ERROR)
        result = Result(summary(request.command, code, line, why))
    warnings = () if result is None else result.document.get("warnings", ())
    show_warnings([notice for notice in context.notices if notice not in warnings])
    if result is None:
        return _Ended(ExitCode.OK)
    document = with_ending(result.document, context)
    shown = _written(request, result._replace(document=document), reports, context)
    ended = int(shown["exit_code"])
    if metrics is not None:
        ended = _write_metrics(metrics, ended, document, result.measured)
    signals.let_go()
    if request.output.format is Format.JSON or not sys.stdout.isatty():
        print_line(to_line(shown))
    return _Ended(ended, bool(result.document.get("warnings")))


def _result_of(request: Request, has_reports: bool) -> Result | None:
    """Execute a request; make the whole document if somebody reads it.

    That takes long, so a signal may come meanwhile.
    """
    result = request.execute()
    is_read = has_reports or request.output.format is Format.JSON
    if result is None or result.whole is None or not is_read:
        return result
    return result._replace(document=result.whole())


def _is_unforeseen(error: BaseException) -> bool:
    """Return whether nobody raised an error on purpose."""
    return ending_of_error(error).reason_code is ReasonCode.INTERNAL_ERROR


def _written(
    request: Request, result: Result, reports: Sequence[str], context: CommandContext
) -> JsonObject:
    """Write each report, and return what the last line of standard output is to say."""
    configuration = {"configuration": to_json(configuration_document(context))}
    document = result.document | configuration
    shown = document
    if request.output.format is not Format.JSON and result.summary is not None:
        shown = with_ending(result.summary, context)
    for report in reports:
        try:
            write_report(report, document)
        except Exception as error:  # whatever it is, the command has ended, and says so
            line = error_line(error)
            complain(line, f"The report {report} was not written; the command itself has ended.")
            shown = without_report(shown, line)
    return shown


def _write_metrics(
    path: str,
    code: int,
    document: JsonObject,
    measured: "api.RoundPlan | api.CleaningReport | None",
) -> int:
    """Write the metrics of how the command ended; return the exit code."""
    try:
        with atomic_output(path) as temporary, LOCAL.open_named(temporary, "wb") as out:
            out.write(api.metrics_of(document, measured, path))
    except OSError as error:
        not_written = f"The metrics {path} were not written; the command itself has ended."
        complain(error_line(error), not_written)
        return code or ExitCode.FAILED
    return code


def complain(line: str, changed: str) -> None:
    """Print what went wrong, and what was changed unless the line says so itself."""
    already_said = "nothing was changed" in line.lower()
    stop = "" if line.endswith(("?", "!")) else "."
    log_line(f"{line}{stop}" + ("" if already_said else f" {changed}"), Level.ERROR)
