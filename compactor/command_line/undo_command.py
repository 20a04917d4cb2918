"""`undo`, from the words of the command line to lines and a result."""

import os

from compactor import api
from compactor.command_line.console import show_lines
from compactor.command_line.requests import Format, Result, UndoArguments
from compactor.exit_codes import ExitCode, UsageError
from compactor.views import undo_report
from compactor.views.json_values import to_json
from compactor.views.report_json import summary


def result_of(wanted: UndoArguments) -> Result:
    """Bring back what a run kept, or drop it; show what became of each log."""
    if wanted.discard and wanted.dry_run:
        raise UsageError("--discard and --dry-run: give one of them. Nothing was changed")
    if wanted.discard:
        path = api.discard(wanted.run_dir)
        if wanted.format is Format.TABLE:
            show_lines([f"Removed: {path}"])
        return Result(summary("undo", ExitCode.OK) | {"discarded": path})
    reports = api.undo(wanted.run_dir, wanted.allowed_file_systems, wanted.dry_run)
    log_dirs = [] if wanted.dry_run else list(dict.fromkeys(report.log_dir for report in reports))
    problems = api.start_problems(log_dirs) if log_dirs else []
    begin = summary(
        "undo", undo_report.exit_code(reports), reason_code=undo_report.reason_code(reports)
    ) | {"dry_run": wanted.dry_run, "totals": undo_report.totals(reports)}
    if wanted.format is Format.TABLE:
        after = (
            undo_report.after_dry_run(wanted.run_dir, reports)
            if wanted.dry_run
            else undo_report.after_undo(wanted.run_dir, reports, problems)
        )
        show_lines([*undo_report.lines(reports, wanted.dry_run), *after])
    run_id = os.path.basename(os.path.abspath(wanted.run_dir))
    undone = {} if wanted.dry_run else {"undone_run": run_id}
    logs = undone | {"logs": undo_report.documents(reports)}
    return Result(begin | logs | {"start_problems": to_json(problems)}, begin)
