"""Directories of our own making, removed as far as they can be: what stays of them does no harm."""

import contextlib
import shutil


def discard_directory(path: str) -> None:
    """Remove a directory with all that is in it. Nothing is raised, and part of it may stay."""
    with contextlib.suppress(OSError):  # rmtree raises what goes wrong at its own open directories
        shutil.rmtree(path, ignore_errors=True)
