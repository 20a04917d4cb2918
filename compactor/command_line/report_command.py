"""`report`, from the words of the command line to a table and a result."""

from dataclasses import dataclass
from typing import ClassVar

from compactor import api, views
from compactor.command_line.command import (
    Command,
    Format,
    Output,
    Result,
    operand,
    output_part,
    result_of,
)
from compactor.command_line.console import show
from compactor.outcome.exit_codes import ExitStatus
from compactor.reason_codes import ReasonCode


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCommand(Command):
    """Summarize reports: how each run ended, the sum of all, and the worst exit code.

    [dim]compactor report reports/*.json --report all.json[/]
    """

    NAME: ClassVar[str] = "report"

    paths: tuple[str, ...] = operand(
        "FILE…",
        "Reports as JSON: from --report, or the last line of standard output",
        are_several=True,
        missing="a report, as --report FILE.json writes it",
    )
    output: Output = output_part("report", "format", "debug")

    def execute(self) -> Result:
        """Make one report of several."""
        merged = api.merge_reports(self.paths)
        if self.output.format is Format.TABLE:
            show(lambda width: views.merged_view(merged, width))
        reason_code = merged.reason_code or ReasonCode.FAILED
        ending = ExitStatus(merged.exit_code, reason_code)
        return result_of(self.NAME, views.merged_document(merged), ending)
