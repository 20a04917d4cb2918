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
)
from compactor.command_line.console import show, show_warnings
from compactor.command_line.shared_options import (
    CONFIGURATION,
    LOG_DIR_MISSING,
    LOG_DIRS,
    LOG_MISSING,
    directories_or_logs,
)
from compactor.outcome.exit_codes import ExitCode
from compactor.reason_codes import ReasonCode
from compactor.views.report_json import summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain(Command):
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
        code, reason_code = ExitCode.OK, ReasonCode.DONE
        if found.outcome == "set-aside":
            code, reason_code = ExitCode.PARTIAL, ReasonCode.LOGS_SET_ASIDE
        begin = summary("explain", code, reason_code=reason_code)
        if self.output.format is Format.TABLE:
            show(lambda _: views.explanation_view(found))
        show_warnings(found.warnings)
        return Result(
            begin | views.explanation_document(found) | {"warnings": list(found.warnings)}, begin
        )
