"""`explain`, from the words of the command line to a table and a result."""

from compactor import api
from compactor.command_line.console import show, show_warnings
from compactor.command_line.requests import ExplainArguments, Format, Result, rules_of
from compactor.exit_codes import ExitCode
from compactor.views.explanation import explanation_document, explanation_view
from compactor.views.report_json import summary


def result_of(wanted: ExplainArguments) -> Result:
    """Show every bound of one log, and why it is cleaned or not."""
    words = wanted.words
    found = api.explain(words.log_dirs, wanted.topic_partition, rules_of(words))
    begin = summary("explain", ExitCode.PARTIAL if found.outcome == "set-aside" else ExitCode.OK)
    if words.format is Format.TABLE:
        show(lambda _: explanation_view(found))
    show_warnings(found.warnings)
    return Result(begin | explanation_document(found) | {"warnings": list(found.warnings)}, begin)
