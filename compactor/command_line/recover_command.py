"""`recover`, from the words of the command line to a table and a result."""

from compactor import api
from compactor.command_line.console import show, show_lines, shown_progress
from compactor.command_line.requests import Format, Result, RoundArguments, rules_of
from compactor.exit_codes import ExitCode
from compactor.reason_codes import ReasonCode
from compactor.views.json_values import to_json
from compactor.views.next_steps import after_recovery
from compactor.views.recovery_report import recovery_document
from compactor.views.recovery_table import recovery_view
from compactor.views.report_json import summary


def result_of(wanted: RoundArguments) -> Result:
    """Finish or undo what was cut short, of a broker too; show what was done."""
    with shown_progress() as progress:
        recovered = api.recover(
            wanted.log_dirs,
            rules_of(wanted),
            wanted.allowed_file_systems,
            progress,
            wanted.as_kafka,
        )
    problems = api.start_problems([log_dir.path for log_dir in recovered])
    document = recovery_document(recovered) | {"start_problems": to_json(problems)}
    if wanted.format is Format.TABLE:
        show(lambda width: recovery_view(recovered, width))
        show_lines(after_recovery(recovered, problems))
    code, reason_code = ExitCode.OK, ReasonCode.DONE
    if api.problems_of(recovered):
        code, reason_code = ExitCode.PARTIAL, ReasonCode.LOGS_SET_ASIDE
    elif api.forbid_start(problems):
        code, reason_code = ExitCode.PARTIAL, problems[0].reason_code
    begin = summary("recover", code, reason_code=reason_code) | {"totals": document["totals"]}
    return Result(begin | document, begin)
