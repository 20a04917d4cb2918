"""Files that may be gone already. Source: Kafka, Utils.atomicMoveWithFallback, LazyIndex."""

import contextlib

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
