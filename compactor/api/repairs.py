"""`undo` and `discard`: bring back the originals that a run has kept, or remove them."""

from compactor.api import path_arguments
from compactor.api.progress import note_changes
from compactor.command_context import current_context
from compactor.errors import RefusedError
from compactor.originals import kept_run
from compactor.originals.kept_run_lock import held
from compactor.originals.undo import UndoReport, UndoStatus, undo_run
from compactor.originals.undo_outlook import undo_outlook
from storage.arguments import PathArg
from storage.errors import CorruptFileError
from storage.files.local import LOCAL

MAY_HAVE_BEEN_UNDONE = "Some logs may have been undone; run it again for the others."


def undo(
    run_dir: PathArg, allowed_file_systems: tuple[str, ...] = (), dry_run: bool = False
) -> list[UndoReport]:
    """Undo a run that kept its originals; return what became of each log.

    A log that was changed since is left as it is. run_dir: DIR/RUN_ID of `keep_originals`.
    dry_run: return what would become of each log, change nothing and take no lock.
    Raise UsageError, RefusedError and CorruptFileError before anything is changed, LockLostError
    and OSError at any time; then `what_was_changed` says what has been changed.
    """
    path = path_arguments.kept_run(run_dir)
    if dry_run:
        with held(path):
            reports = undo_outlook(path, allowed_file_systems, LOCAL)
        current_context().note_log_dirs(report.log_dir for report in reports)
        return reports
    try:
        with held(path):
            reports = undo_run(path, allowed_file_systems, LOCAL)
    except (RefusedError, CorruptFileError):
        raise  # before anything was changed
    except BaseException as error:
        note_changes(error, MAY_HAVE_BEEN_UNDONE)
        raise
    current_context().note_log_dirs(report.log_dir for report in reports)
    current_context().is_changed |= any(r.status is UndoStatus.UNDONE for r in reports)
    return reports


def discard(run_dir: PathArg) -> str:
    """Remove the originals that a run has kept; return their directory.

    If it was cut short, it can be called again. Raise UsageError, OSError, and RefusedError while
    the run or an undo is at work.
    """
    path = path_arguments.kept_run(run_dir, to_discard=True)
    kept_run.discard(path, LOCAL)
    current_context().is_changed = True
    return path
