"""`explain`, from the words of the command line to a table and a result."""

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
    part,
    result_of,
)
from compactor.command_line.console import show, show_warnings
from compactor.command_line.shared_options import (
    CONFIGURATION,
    LOG_DIR_MISSING,
    LOG_DIRS,
    LOG_MISSING,
    directories_or_logs,
)
from compactor.outcome.exit_codes import DONE, ExitCode, ExitStatus
from compactor.reason_codes import ReasonCode


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainCommand(Command):
    """Say why one log is compacted or not, what to do about it, and what sets its bounds.

    Reads metadata and the end of the log.

    [dim]compactor explain /data/kafka orders-7[/]
    """

    NAME: ClassVar[str] = "explain"

    log_dirs: tuple[str, ...] = operand(
        "LOG_DIR",
        LOG_DIRS,
        are_several=True,
        missing=LOG_DIR_MISSING,
        offered=directories_or_logs,
    )
    topic_partition: str = operand(
        "TOPIC-PARTITION",
        "The log, for example orders-7",
        missing=LOG_MISSING,
        offered=directories_or_logs,
    )
    rules: api.Rules = part(
        api.Rules, *CONFIGURATION, "as_of", "any_clock", "assume_fully_replicated"
    )
    output: Output = output_part("report", "format", "debug")

    def execute(self) -> Result:
        """Show every bound of one log, and why it is cleaned or not."""
        found = api.explain(self.log_dirs, self.topic_partition, self.rules)
        is_set_aside = found.outcome == "set-aside"
        ending = ExitStatus(ExitCode.PARTIAL, ReasonCode.LOGS_SET_ASIDE) if is_set_aside else DONE
        if self.output.format is Format.TABLE:
            show(lambda _: views.explanation_view(found))
        show_warnings(found.warnings)
        return result_of(self.NAME, found, ending)
