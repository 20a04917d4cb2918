"""`plan`, from the words of the command line to a table and a result."""

from compactor import api
from compactor.command_line.console import show, show_warnings
from compactor.command_line.requests import Format, Result, RoundArguments, rules_of
from compactor.exit_codes import exit_code_of_statuses
from compactor.views.plan_table import plan_document, plan_view
from compactor.views.report_json import summary
from storage.collector import collector_paused


@collector_paused()  # from the first listing to the last line nothing becomes garbage
def result_of(wanted: RoundArguments) -> Result:
    """Survey and select, and show what a round would take on."""
    found, space, refused, warnings = api.plan(wanted.log_dirs, rules_of(wanted))
    document = plan_document(found, space, refused) | {"warnings": list(warnings)}
    code = exit_code_of_statuses(log.status for log in found.not_cleaned)
    begin = summary("plan", code) | {"totals": document["totals"]}
    if wanted.format is Format.TABLE:
        show(lambda width: plan_view(found, width, space, refused, warnings))
    else:
        show_warnings(warnings)
    return Result(begin | document, begin)
