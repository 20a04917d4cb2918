"""`inspect`, from the words of the command line to tables and a result."""

from dataclasses import dataclass, replace
from typing import ClassVar

from compactor import api, views
from compactor.command_line.command import (
    Command,
    Format,
    Output,
    Result,
    operand,
    output_part,
    part,
    result_of,
)
from compactor.command_line.console import show, show_lines, show_warnings, shown_progress
from compactor.command_line.shared_options import (
    CONFIGURATION,
    LOG_DIR_MISSING,
    OF_TASKS,
    PARTITIONS,
    PARTITIONS_HELP,
    directories_or_logs,
    log_dirs_and_partitions,
)
from compactor.outcome.exit_codes import DONE, ExitCode, ExitStatus
from compactor.reason_codes import ReasonCode
from compactor.settings.options import LOGS, option

SAMPLE_BYTES = 256 << 20  # of each log


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectCommand(Command):
    """Show what stands in logs: formats, codecs, sizes, keys, tombstones, open transactions.

    Of keys also their versions, of tombstones why they are still there. Reads every record;
    changes nothing.

    [dim]compactor inspect /data/kafka orders-7[/]
    """

    NAME: ClassVar[str] = "inspect"

    words: tuple[str, ...] = operand(
        PARTITIONS,
        PARTITIONS_HELP,
        are_several=True,
        missing=LOG_DIR_MISSING,
        offered=directories_or_logs,
    )
    sample: bool = option(
        False,
        "",
        "Read at most 256 MiB of each log, spread evenly. Counts are of what was read",
        LOGS,
    )
    rules: api.Rules = part(api.Rules, *CONFIGURATION, "as_of")
    options: api.InspectOptions = part(api.InspectOptions, "top", *OF_TASKS)
    output: Output = output_part("report", "format", "debug")

    def execute(self) -> Result:
        """Show what stands in logs."""
        options = replace(self.options, sample_bytes=SAMPLE_BYTES if self.sample else None)
        log_dirs, partitions = log_dirs_and_partitions(self.words)
        with shown_progress() as progress:
            found = api.inspect(log_dirs, partitions, self.rules, options, progress)
        failed = any(log.problem is not None for log in found.logs)
        ending = ExitStatus(ExitCode.PARTIAL, ReasonCode.LOGS_FAILED) if failed else DONE
        if self.output.format is Format.TABLE:
            show(lambda width: views.inspection_view(found, width))
            show_lines(views.after_inspection(found))
        show_warnings(found.warnings)
        return result_of(self.NAME, found, ending)
