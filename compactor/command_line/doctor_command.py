"""`doctor`, from the words of the command line to a table and a result."""

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
from compactor.command_line.console import show, show_lines
from compactor.outcome.exit_codes import DONE, ExitCode, ExitStatus
from compactor.reason_codes import ReasonCode
from compactor.settings.options import SPARK, option


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCommand(Command):
    """Say whether this machine, and log directories on it, are fit for a run, and what to do.

    Java, Spark, memory, room, locks, permissions, clock. Reads only.

    [dim]compactor doctor /data/kafka[/]
    """

    NAME: ClassVar[str] = "doctor"

    log_dirs: tuple[str, ...] = operand(
        "LOG_DIR", "Log directories to check as well", are_several=True, default=()
    )
    start_spark: bool = option(
        False, "", "Also start Spark and run one small job, which takes a few seconds", SPARK
    )
    output: Output = output_part("report", "format", "quiet", "debug")

    def execute(self) -> Result:
        """Show what a run needs, and what of it is missing."""
        found = api.doctor(self.log_dirs, self.start_spark)
        ending = DONE if found.is_fit else ExitStatus(ExitCode.PARTIAL, ReasonCode.FINDINGS)
        if self.output.format is Format.TABLE:
            show_lines(views.records_gone(views.logs_without_records(found)))
            show(lambda _: views.checkup_view(found))
        return result_of(self.NAME, found, ending)
