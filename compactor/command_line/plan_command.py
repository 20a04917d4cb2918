"""`plan`, from the words of the command line to a table and a result."""

from compactor import api
from compactor.command_line import arguments
from compactor.command_line.console import show, show_lines, show_warnings
from compactor.command_line.requests import Format, Result, RoundArguments, rules_of
from compactor.exit_codes import ending_of_logs
from compactor.round_report import LogStatus
from compactor.views.json_values import to_json
from compactor.views.met_conditions import met_documents, met_lines
from compactor.views.next_steps import after_plan, names_of_gone, records_gone
from compactor.views.plan_json import estimates_document, plan_document, plan_totals
from compactor.views.plan_table import Said, Screen, plan_view, saved_lines
from compactor.views.report_json import JsonObject, summary
from compactor.views.run_ending import run_ending_document
from storage.collector import collector_paused, spare_what_stays


@collector_paused()  # from the first listing to the last line nothing becomes garbage
def result_of(wanted: RoundArguments) -> Result:
    """Survey and select, and show what a round would take on."""
    conditions = api.conditions_of_plan(wanted.fail_if) if wanted.fail_if else ()
    sample_bytes = arguments.size_bytes("--sample-bytes", wanted.sample_bytes)
    planned = api.plan(wanted.log_dirs, rules_of(wanted), wanted.saved_plan, sample_bytes)
    found, space, warnings, refused = *planned[:2], planned.warnings, planned.refusals
    met = api.met_by_plan(conditions, found) if conditions else []
    statuses = [LogStatus.WOULD_CLEAN] * len(found.logs)
    statuses += [log.status for log in found.not_cleaned]
    code, reason_code = ending_of_logs(statuses, is_condition_met=bool(met))
    begin = summary("plan", code, reason_code=reason_code) | {
        "conditions_met": met_documents(met),
        "totals": plan_totals(found),
        "run_would_end": run_ending_document(planned.run),
    }
    if wanted.format is Format.TABLE:
        said = Said(
            space=space,
            refusals=refused,
            warnings=warnings,
            expected=planned.expected,
            estimates=planned.estimates,
            may_start=not api.forbid_start(planned.start_problems),
        )
        screen = Screen(wanted.order, wanted.top)
        show_lines(records_gone(names_of_gone(found.not_cleaned)))
        show(lambda width: plan_view(found, width, said, screen))
        show_lines(met_lines(met))
        log_dirs = [log_dir.path for log_dir in found.log_dirs]
        if wanted.saved_plan is not None:
            show_lines(saved_lines(wanted.saved_plan, log_dirs))
        else:
            to_clean = log_dirs if found.logs and not refused else []
            show_lines(after_plan(to_clean, planned.start_problems))
    else:
        show_warnings(warnings)
    warned = {"warnings": list(warnings)}

    @collector_paused()
    def whole() -> JsonObject:
        document = plan_document(found, space, refused, wanted.order)
        problems = {"start_problems": to_json(planned.start_problems)}
        return begin | document | warned | problems | estimates_document(planned)

    spare_what_stays()
    return Result(begin | warned, begin, found, whole)
