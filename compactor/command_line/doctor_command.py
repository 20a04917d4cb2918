"""`doctor`, from the words of the command line to a table and a result."""

from compactor import api
from compactor.command_line.console import show, show_lines
from compactor.command_line.requests import DoctorArguments, Format, Result
from compactor.exit_codes import ExitCode
from compactor.reason_codes import ReasonCode
from compactor.views.checkup import checkup_document, checkup_view, logs_without_records
from compactor.views.next_steps import records_gone
from compactor.views.report_json import summary


def result_of(wanted: DoctorArguments) -> Result:
    """Show what a run needs, and what of it is not there."""
    found = api.doctor(wanted.log_dirs, wanted.start_spark)
    document = checkup_document(found)
    code, reason_code = ExitCode.OK, ReasonCode.DONE
    if document["counts"]["fail"]:
        code, reason_code = ExitCode.PARTIAL, ReasonCode.FINDINGS
    if wanted.format is Format.TABLE:
        show_lines(records_gone(logs_without_records(found)))
        show(lambda _: checkup_view(found))
    begin = summary("doctor", code, reason_code=reason_code) | {
        name: document[name] for name in ("counts", "run_would_end")
    }
    return Result(begin | document, begin)
