"""`run`, from the words of the command line to tables and a result."""

from compactor import api
from compactor.command_line import arguments
from compactor.command_line.console import show, show_warnings, shown_progress
from compactor.command_line.requests import Format, OnCorrupt, Result, RoundArguments, rules_of
from compactor.views.report_json import report_document, report_summary
from compactor.views.report_table import report_view


def result_of(wanted: RoundArguments) -> Result:
    """One round, dry or real; show what became of it."""
    options = _options_of(wanted)
    with shown_progress() as progress:
        report = api.run(wanted.log_dirs, rules_of(wanted), options, progress)
    if wanted.format is Format.TABLE:
        show(lambda width: report_view(report, width))
    else:
        show_warnings(report.warnings)
    return Result(report_document(report), report_summary(report))


def _options_of(wanted: RoundArguments) -> api.RunOptions:
    return api.RunOptions(
        dry_run=wanted.dry_run,
        map_capacity=wanted.map_capacity,
        recover_first=wanted.recover_first,
        fail_on_corrupt=wanted.on_corrupt is OnCorrupt.FAIL,
        retry=wanted.retry,
        drop_null_keys=wanted.drop_null_keys,
        allowed_file_systems=wanted.allowed_file_systems,
        keep_originals=wanted.keep_originals,
        keep_for_ms=arguments.duration_ms("--keep-for", wanted.keep_for),
        work_dir=wanted.work_dir,
        master=arguments.master(wanted.master),
    )
