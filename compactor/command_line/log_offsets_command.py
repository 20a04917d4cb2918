"""`log offsets`, from the words of the command line to tables and a result."""

from compactor import api
from compactor.command_line.console import show, show_lines, show_warnings
from compactor.command_line.log_requests import OffsetsArguments
from compactor.command_line.requests import Format, Result
from compactor.exit_codes import ExitCode
from compactor.views.log_offsets_table import offsets_document, offsets_view, warnings_of
from compactor.views.next_steps import after_offsets
from compactor.views.report_json import summary


def result_of(wanted: OffsetsArguments) -> Result:
    """Look at one log; show every offset."""
    times = [api.as_of_ms(text, "--at") for text in wanted.at]
    log = wanted.log
    found = api.log_offsets(log.log_dir, log.topic_partition, times, log.rules)
    show_warnings(warnings_of(found))
    if wanted.format is Format.TABLE:
        show(lambda _: offsets_view(found))
        show_lines(after_offsets(log.log_dir, found))
    begin = summary("log offsets", ExitCode.OK)
    return Result(begin | offsets_document(found), begin)
