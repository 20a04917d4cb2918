"""`undo` and `discard`: bring back what a run has kept, or drop it."""

from compactor.api import places
from compactor.api.changes import note_changes
from compactor.errors import RefusedError
from compactor.originals import kept_run
from compactor.originals.kept_run_lock import held
from compactor.originals.undo import UndoReport, undo_run
from storage.errors import CorruptFileError

MAY_HAVE_BEEN_UNDONE = "Some logs may have been undone; run it again for the others."


def undo(run_dir: str, allowed_file_systems: tuple[str, ...] = ()) -> list[UndoReport]:
    """What became of each log; one that was changed since is left as it is.

    run_dir: the run's own, DIR/RUN_ID of `keep_originals`. Raise UsageError, RefusedError and
    CorruptFileError before anything is changed, LockLostError, OSError; see `what_was_changed`.
    """
    path = places.kept_run(run_dir)
    try:
        with held(path):
            return undo_run(path, allowed_file_systems)
    except (RefusedError, CorruptFileError):
        raise  # before anything was changed
    except BaseException as error:
        note_changes(error, MAY_HAVE_BEEN_UNDONE)
        raise


def discard(run_dir: str) -> str:
    """Drop what a run has kept; where that was. It can be begun once more if it was cut short.

    Raise UsageError, RefusedError where the run or an undo is at work, OSError.
    """
    path = places.kept_run(run_dir, to_discard=True)
    kept_run.discard(path)
    return path
