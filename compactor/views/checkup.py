"""The view of `doctor`: a line for each check, and what to do about those that are not ok."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from compactor.diagnosis.checks import Check, Checkup, Grade, count
from compactor.diagnosis.log_dir_checks import RECORDS
from compactor.host.printable import counted, one_line, printable
from compactor.outcome.exit_codes import ExitCode

_INDENT = " " * 6
_STYLES = {Grade.OK: "green", Grade.WARN: "yellow", Grade.FAIL: "bold red"}


def checkup_view(checkup: Checkup) -> RenderableType:
    """The machine, then each log directory, then how many are not ok."""
    width = max((len(check.subject) for check in checkup.checks), default=0)
    parts: list[RenderableType] = [Text("This machine", "bold"), *_lines(checkup.machine, width)]
    for path, checks in checkup.log_dirs:
        parts += [Text(printable(path), "bold"), *_lines(checks, width)]
    if checkup.run:
        parts += [Text("A run", "bold"), *_lines(checkup.run, width)]
    return Group(*parts, Text(_sum(checkup)))


def logs_without_records(checkup: Checkup) -> list[str]:
    """Return log directories, each with what is said of logs whose records are gone."""
    return [
        f"{path}: {check.found}"
        for path, checks in checkup.log_dirs
        for check in checks
        if check.subject == RECORDS and check.grade is Grade.FAIL
    ]


def _lines(checks: Sequence[Check], width: int) -> Iterator[RenderableType]:
    """Yield checks in columns, and what to do, never broken: a shell may get it.

    width: of the column of subjects.
    """
    for check in checks:
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(no_wrap=True, min_width=max(map(len, Grade)))
        table.add_column(no_wrap=True, min_width=width)
        table.add_column(overflow="fold")
        grade = Text(check.grade, _STYLES[check.grade])
        table.add_row(grade, check.subject, Text(one_line(check.found)))
        yield table
        for line in (check.advice or "").splitlines():
            is_command = line.startswith(" ")
            shown = f"{'  ' if is_command else ''}{_INDENT}{one_line(line)}"
            yield Text(shown, "dim", no_wrap=True, overflow="ignore")


def _sum(checkup: Checkup) -> str:
    counts = checkup.counts
    problems, warnings = counts[Grade.FAIL], counts[Grade.WARN]
    if problems:
        lines = (
            "see the line with fail" if problems == 1 else f"see the {problems:,} lines with fail"
        )
        is_machine_well = not count(checkup.machine)[Grade.FAIL]
        if is_machine_well and checkup.ending and checkup.ending.exit_code == ExitCode.OK:
            return f"Something is wrong here, though a run would not end at it: {lines}."
        return f"A run would not work as it is: {lines}."
    if warnings:
        return f"A run can be done; {counted(warnings, 'warning')} to look at."
    return "A run can be done."
