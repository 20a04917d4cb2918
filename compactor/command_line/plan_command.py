"""`plan`, from the words of the command line to a table and a result."""

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
    OF_TASKS,
    SELECTION,
    directories_or_logs,
    fail_if,
    require_tasks,
)
from compactor.outcome.exit_codes import ending_of_logs
from compactor.outcome.round_report import LogStatus
from compactor.settings.options import OUTPUT, Number, option, size_bytes
from compactor.views.report_json import JsonObject, summary
from storage.gc_pause import collector_paused, freeze_heap


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCommand(Command):
    """Show how much is dirty, by topic, what a run would clean, and what blocks the rest.

    Reads metadata only, unless --sample is given.

    [dim]compactor plan /data/kafka[/]
    """

    NAME: ClassVar[str] = "plan"

    log_dirs: tuple[str, ...] = operand(
        "LOG_DIR",
        LOG_DIRS,
        are_several=True,
        missing=LOG_DIR_MISSING,
        offered=directories_or_logs,
    )
    rules: api.Rules = part(api.Rules, *CONFIGURATION, *SELECTION)
    fail_if: tuple[str, ...] = fail_if()
    top: int = option(
        10,
        "N",
        "Rows of the list: topics, or logs if there are no more than N",
        OUTPUT,
        kind=Number(1),
    )
    all: bool = option(False, "", "List every log, and why each is passed over", OUTPUT)
    sample: bool = option(
        False,
        "",
        "Read up to --sample-bytes of each log, and estimate what would go. Below 512 MiB in "
        "all, --engine auto starts no process",
        OUTPUT,
    )
    sample_bytes: int = option(
        268435456,
        "SIZE",
        "For --sample. A log of this size or less is read whole, and its result is exact",
        OUTPUT,
        read=size_bytes,
    )
    options: api.TaskOptions = part(api.TaskOptions, *OF_TASKS)
    save: str | None = option(None, "FILE", "Also save the plan, for run --plan FILE", OUTPUT)
    output: Output = output_part("report", "metrics", "format", "quiet", "debug")

    @collector_paused()  # from the first listing to the last line nothing becomes garbage
    def execute(self) -> Result:
        """Survey and select, and show what a round would take on."""
        conditions = api.conditions_of_plan(self.fail_if) if self.fail_if else ()
        require_tasks(self.options, self.sample, "--sample")
        planned = self._planned()
        found, space, warnings, refused = *planned[:2], planned.warnings, planned.refusals
        met = api.met_by_plan(conditions, found) if conditions else []
        statuses = [LogStatus.WOULD_CLEAN] * len(found.logs)
        statuses += [log.status for log in found.not_cleaned]
        code, reason_code = ending_of_logs(statuses, is_condition_met=bool(met))
        begin = summary("plan", code, reason_code=reason_code) | {
            "conditions_met": views.to_json(met),
            "totals": views.to_json(views.PlanTotals.of(found)),
            "run_would_end": views.to_json(planned.run),
        }
        if self.output.format is Format.TABLE:
            said = views.PlanDetails(
                space=space,
                refusals=refused,
                warnings=warnings,
                expected=planned.expected,
                estimates=planned.estimates,
                may_start=not api.forbid_start(planned.start_problems),
            )
            screen = views.Screen(self.rules.order, None if self.all else self.top)
            show_lines(views.records_gone(views.names_of_gone(found.not_cleaned)))
            show(lambda width: views.plan_view(found, width, said, screen))
            show_lines(views.met_lines(met))
            log_dirs = [log_dir.path for log_dir in found.log_dirs]
            if self.save is not None:
                show_lines(views.saved_lines(self.save, log_dirs))
            else:
                to_clean = log_dirs if found.logs and not refused else []
                show_lines(views.after_plan(to_clean, planned.start_problems))
        else:
            show_warnings(warnings)

        @collector_paused()
        def whole() -> JsonObject:
            document: JsonObject = views.to_json(views.plan_document(planned, self.rules.order))
            return begin | document

        freeze_heap()
        return Result(begin | {"warnings": list(warnings)}, begin, found, whole)

    def _planned(self) -> api.Plan:
        if not self.sample:
            return api.plan(self.log_dirs, self.rules, self.save)
        with shown_progress() as progress:
            sample_bytes = self.sample_bytes
            return api.plan(
                self.log_dirs, self.rules, self.save, sample_bytes, self.options, progress
            )
