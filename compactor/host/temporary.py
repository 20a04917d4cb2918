"""The directory for temporary files, where a container may have none that can be written to."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from compactor.errors import CleaningFailedError


def temporary_directory() -> str:
    """Raise CleaningFailedError where there is none."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError as error:
        raise CleaningFailedError(
            "no directory for temporary files can be written to: set TMPDIR to one that this user "
            "can write to, or give --work-dir"
        ) from error


@contextmanager
def temporary_files(instead: str) -> Iterator[None]:
    """Where there is no directory for them, let them be made in another one meanwhile."""
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        before = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = tempfile.tempdir = instead
        try:
            yield
        finally:
            tempfile.tempdir = None
            del os.environ["TMPDIR"]
            if before is not None:
                os.environ["TMPDIR"] = before
    else:
        yield
