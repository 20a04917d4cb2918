"""What `undo` does, from checked arguments to a result."""

from typing import NamedTuple

from compactor.command_line import arguments
from compactor.command_line.requests import Format, Result, StoppedError
from compactor.errors import RefusedError
from compactor.exit_codes import ExitCode
from compactor.host.output import print_line
from compactor.host.printable import printable
from compactor.views.report_json import verdict
from storage.errors import CorruptFileError


class UndoArguments(NamedTuple):
    run_dir: str
    discard: bool
    format: Format
    allowed_file_systems: tuple[str, ...]


def undo(wanted: UndoArguments) -> Result:
    """Bring back what a run kept, or drop it; show what became of each log."""
    path = arguments.kept_run(wanted.run_dir, wanted.discard)

    from compactor.originals import kept_run
    from compactor.originals.kept_run_lock import held
    from compactor.originals.undo import undo_run
    from compactor.views import undo_report

    if wanted.discard:
        kept_run.discard(path)
        return Result(verdict("undo", ExitCode.OK) | {"discarded": path})
    try:
        with held(path):
            reports = undo_run(path, wanted.allowed_file_systems)
    except (RefusedError, CorruptFileError):
        raise  # before anything was changed
    except (Exception, KeyboardInterrupt) as error:
        raise StoppedError(
            error, "Some logs may have been undone; run it again for the others."
        ) from error
    begin = verdict("undo", undo_report.exit_code(reports)) | {
        "totals": undo_report.totals(reports)
    }
    if wanted.format is Format.TABLE:
        for line in undo_report.lines(reports):
            print_line(printable(line))
    return Result(begin | {"logs": undo_report.documents(reports)}, begin)
