"""`run`, from the words of the command line to tables and a result."""

from compactor import api
from compactor.command_line import arguments
from compactor.command_line.console import show, show_lines, show_warnings, shown_progress
from compactor.command_line.requests import Format, OnCorrupt, Result, RoundArguments, rules_of
from compactor.exit_codes import ending_of_report
from compactor.views.met_conditions import met_documents, met_lines
from compactor.views.next_steps import names_of_gone, records_gone
from compactor.views.report_json import ending, report_document, report_summary
from compactor.views.report_table import report_view


def result_of(wanted: RoundArguments) -> Result:
    """One round, dry or real; show what became of it."""
    options = _options_of(wanted)
    conditions = api.conditions_of_run(wanted.fail_if) if wanted.fail_if else ()
    with shown_progress() as progress:
        report = api.run(wanted.log_dirs, rules_of(wanted), options, progress)
    met = api.met_by_run(conditions, report) if conditions else []
    if wanted.format is Format.TABLE:
        show_lines(records_gone(names_of_gone(report.logs)))
        show(lambda width: report_view(report, width))
        show_lines(met_lines(met))
    else:
        show_warnings(report.warnings)
    ended = ending(*ending_of_report(report, is_condition_met=bool(met)))
    begin = report_summary(report) | ended | {"conditions_met": met_documents(met)}
    return Result(begin | report_document(report) | ended, begin, report)


def _options_of(wanted: RoundArguments) -> api.RunOptions:
    return api.RunOptions(
        dry_run=wanted.dry_run,
        plan=wanted.saved_plan,
        recover_first=wanted.recover_first,
        fail_on_corrupt=wanted.on_corrupt is OnCorrupt.FAIL,
        wait_seconds=wanted.wait_seconds,
        retry=wanted.retry,
        exact_bytes=wanted.exact_bytes,
        drop_null_keys=wanted.drop_null_keys,
        allowed_file_systems=wanted.allowed_file_systems,
        keep_originals=wanted.keep_originals,
        keep_for_ms=arguments.duration_ms("--keep-for", wanted.keep_for),
        output=wanted.output,
        compacted_only=wanted.compacted_only,
        link=wanted.link,
        io_limit=arguments.rate_bytes("--io-limit", wanted.io_limit),
        nice=wanted.nice,
        work_dir=wanted.work_dir,
        master=arguments.master(wanted.master),
        executor_paths=tuple(map(arguments.executor_path, wanted.executor_paths)),
    )
