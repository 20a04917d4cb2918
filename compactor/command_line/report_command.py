"""`report`, from the words of the command line to a table and a result."""

from compactor import api
from compactor.command_line.console import show
from compactor.command_line.requests import Format, ReportArguments, Result
from compactor.reason_codes import ReasonCode
from compactor.views.merged_table import merged_document, merged_view
from compactor.views.report_json import summary


def result_of(wanted: ReportArguments) -> Result:
    """Make one report of several."""
    merged = api.merge_reports(wanted.paths)
    if wanted.format is Format.TABLE:
        show(lambda width: merged_view(merged, width))
    reason_code = merged.reason_code or ReasonCode.FAILED
    begin = summary("report", merged.exit_code, reason_code=reason_code)
    begin |= {"changed": merged.is_changed, "totals": merged.totals}
    return Result(begin | merged_document(merged), begin)
