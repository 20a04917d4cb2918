"""`inspect`, from the words of the command line to tables and a result."""

from dataclasses import replace

from compactor import api
from compactor.command_line import arguments
from compactor.command_line.console import show, show_lines, show_warnings, shown_progress
from compactor.command_line.requests import Format, InspectArguments, Result, rules_of_settings
from compactor.exit_codes import ExitCode
from compactor.reason_codes import ReasonCode
from compactor.views.inspection_table import inspection_document, inspection_view
from compactor.views.next_steps import after_inspection
from compactor.views.report_json import summary

SAMPLE_BYTES = 256 << 20  # of each log


def result_of(wanted: InspectArguments) -> Result:
    """Show what stands in logs."""
    options = api.InspectOptions(
        sample_bytes=SAMPLE_BYTES if wanted.sample else None,
        top=wanted.top,
        work_dir=wanted.work_dir,
        master=arguments.master(wanted.master),
        executor_paths=tuple(map(arguments.executor_path, wanted.executor_paths)),
    )
    rules = replace(rules_of_settings(wanted.configuration), as_of=wanted.as_of)
    with shown_progress() as progress:
        found = api.inspect(wanted.log_dirs, wanted.partitions, rules, options, progress)
    failed = any(log.problem is not None for log in found.logs)
    begin = summary(
        "inspect",
        ExitCode.PARTIAL if failed else ExitCode.OK,
        reason_code=ReasonCode.LOGS_FAILED if failed else ReasonCode.DONE,
    )
    if wanted.format is Format.TABLE:
        show(lambda width: inspection_view(found, width))
        show_lines(after_inspection(found))
    show_warnings(found.warnings)
    return Result(begin | inspection_document(found), begin)
