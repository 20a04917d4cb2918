"""`recover`, from the words of the command line to a table and a result."""

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
from compactor.command_line.console import show, show_lines, shown_progress
from compactor.command_line.shared_options import (
    CONFIGURATION,
    LOG_DIR_MISSING,
    LOG_DIRS,
    directories_or_logs,
)
from compactor.outcome.exit_codes import DONE, ExitCode, ExitStatus
from compactor.reason_codes import ReasonCode
from compactor.settings.options import LOGS, option


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverCommand(Command):
    """Finish or undo what a run, or a broker's cleaner, left half-done when it was cut short.

    After an unclean shutdown of the broker, check and rebuild what a starting broker would. Sound
    data is never cut off without --as-kafka. Each run still needs --recover-first until a broker
    has stopped cleanly.

    [dim]compactor recover /data/kafka[/]
    """

    NAME: ClassVar[str] = "recover"

    log_dirs: tuple[str, ...] = operand(
        "LOG_DIR",
        LOG_DIRS,
        are_several=True,
        missing=LOG_DIR_MISSING,
        offered=directories_or_logs,
    )
    rules: api.Rules = part(api.Rules, *CONFIGURATION)
    as_kafka: bool = option(
        False,
        "",
        "Do what a broker's start and stop does to each log, even if that "
        "removes sound data for good",
        LOGS,
    )
    options: api.RunOptions = part(api.RunOptions, "allowed_file_systems")
    output: Output = output_part("report", "format", "quiet", "debug")

    def execute(self) -> Result:
        """Finish or undo what was cut short, of a broker too; show what was done."""
        with shown_progress() as progress:
            recovered = api.recover(
                self.log_dirs,
                self.rules,
                self.options.allowed_file_systems,
                progress,
                self.as_kafka,
            )
        problems = api.start_problems([log_dir.path for log_dir in recovered])
        if self.output.format is Format.TABLE:
            show(lambda width: views.recovery_view(recovered, width))
            show_lines(views.after_recovery(recovered, problems))
        ending = DONE
        if api.problems_of(recovered):
            ending = ExitStatus(ExitCode.PARTIAL, ReasonCode.LOGS_SET_ASIDE)
        elif api.forbid_start(problems):
            ending = ExitStatus(ExitCode.PARTIAL, problems[0].reason_code)
        return result_of(self.NAME, views.recovery_document(recovered, problems), ending)
