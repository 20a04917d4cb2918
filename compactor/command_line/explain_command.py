"""`explain`, from the words of the command line to a table and a result."""

from compactor import api
from compactor.command_line.console import show, show_warnings
from compactor.command_line.requests import ExplainArguments, Format, Result, rules_of
from compactor.exit_codes import ExitCode
from compactor.reason_codes import ReasonCode
from compactor.views.explanation import explanation_document, explanation_view
from compactor.views.report_json import summary


def result_of(wanted: ExplainArguments) -> Result:
    """Show every bound of one log, and why it is cleaned or not."""
    words = wanted.words
    found = api.explain(words.log_dirs, wanted.topic_partition, rules_of(words))
    code, reason_code = ExitCode.OK, ReasonCode.DONE
    if found.outcome == "set-aside":
        code, reason_code = ExitCode.PARTIAL, ReasonCode.LOGS_SET_ASIDE
    begin = summary("explain", code, reason_code=reason_code)
    if words.format is Format.TABLE:
        show(lambda _: explanation_view(found))
    show_warnings(found.warnings)
    return Result(begin | explanation_document(found) | {"warnings": list(found.warnings)}, begin)
