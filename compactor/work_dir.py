"""The work directory of a run: task values, parts, verdicts, pieces; nothing that outlives the run.

It must lie outside of every log directory: a broker that starts does not survive a directory there
that is not named like a partition (log-format F-1.4).
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator

from cleaner_jobs.undisturbed import undisturbed
from compactor.errors import CleaningFailedError

SUBDIRECTORIES = ("tasks", "parts", "transactions", "verdicts", "pieces", "progress", "spark")


@contextlib.contextmanager
def open_work_dir(parent: str | None, run_id: str) -> Iterator[str]:
    """Make a directory of this run's own, private to this user, and remove it afterwards."""
    where = parent or "the system's temporary directory"
    with contextlib.ExitStack() as made:
        try:
            path = tempfile.mkdtemp(prefix=f"compactor-{run_id}-", dir=parent)
            made.callback(_remove, path)
            for name in SUBDIRECTORIES:
                os.mkdir(os.path.join(path, name))
        except OSError as error:
            raise CleaningFailedError(
                f"no work directory can be made in {where}: {error.strerror}. Nothing was changed"
            ) from error
        yield path


def _remove(path: str) -> None:
    with undisturbed():
        shutil.rmtree(path, ignore_errors=True)
