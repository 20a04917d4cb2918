"""Files that may be gone already. Source: Kafka, Utils.atomicMoveWithFallback, LazyIndex."""

import contextlib
import os

from storage.file_names import DELETED, parse_future_dir
from storage.files.files import Files


def rename_if_there(files: Files, source: str, target: str) -> None:
    """Rename a file; one that is not there is no error."""
    try:
        files.rename(source, target)
    except FileNotFoundError:
        if files.exists(source):
            raise


def remove_if_there(files: Files, path: str) -> None:
    """Remove a file; one that is not there is no error."""
    with contextlib.suppress(FileNotFoundError):
        files.remove(path)


def moved_meanwhile(files: Files, path: str) -> str:
    """Where a file that was to be deleted is now: the directory of a log that was on its way to
    another log directory may have got its final name since (L-11.8).
    """
    directory, name = os.path.split(path)
    partition = parse_future_dir(os.path.basename(directory))
    if partition is None or not name.endswith(DELETED) or files.exists(path):
        return path
    return os.path.join(os.path.dirname(directory), "{}-{}".format(*partition), name)
