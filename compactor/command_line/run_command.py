"""`run`, from the words of the command line to tables and a result."""

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
from compactor.command_line.console import show, show_lines, show_warnings, shown_progress
from compactor.command_line.shared_options import (
    CONFIGURATION,
    LOG_DIR_MISSING,
    LOG_DIRS,
    SELECTION,
    fail_if,
)
from compactor.outcome.exit_codes import ending_of_report
from compactor.settings.options import options_of
from compactor.views.report_json import summary


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommand(Command):
    """Compact every eligible log in one round. Stop the broker of these directories first.

    A wait for executors, or for a stopped process of the run, ends after COMPACTOR_WAIT_SECONDS
    (an environment variable; 600).

    [dim]compactor run /data/kafka --dry-run[/]
    """

    NAME: ClassVar[str] = "run"

    log_dirs: tuple[str, ...] = operand(
        "LOG_DIR",
        LOG_DIRS,
        are_several=True,
        default=(),
        unless="options__plan",
        missing=LOG_DIR_MISSING,
    )
    rules: api.Rules = part(api.Rules, *CONFIGURATION, *SELECTION)
    options: api.RunOptions = part(api.RunOptions, *options_of(api.RunOptions))
    fail_if: tuple[str, ...] = fail_if()
    output: Output = output_part("report", "metrics", "format", "quiet", "debug")

    def execute(self) -> Result:
        """One round, dry or real; show what became of it."""
        conditions = api.conditions_of_run(self.fail_if) if self.fail_if else ()
        with shown_progress() as progress:
            report = api.run(self.log_dirs, self.rules, self.options, progress)
        met = api.met_by_run(conditions, report) if conditions else []
        if self.output.format is Format.TABLE:
            show_lines(views.records_gone(views.names_of_gone(report.logs)))
            show(lambda width: views.report_view(report, width))
            show_lines(views.met_lines(met))
        else:
            show_warnings(report.warnings)
        code, why = ending_of_report(report, is_condition_met=bool(met))
        begin = summary(self.NAME, code, reason_code=why) | views.to_json(report, is_summary=True)
        begin["conditions_met"] = views.to_json(met)
        return Result(begin | views.to_json(report), begin, report)
