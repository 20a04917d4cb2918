"""The directory of a log, renamed or removed with all that is in it.

Source: Kafka, UnifiedLog.renameDir, delete; spec L-24.3, L-24.4.
"""

import os
from contextlib import suppress
from dataclasses import replace

from storage.file_names import DELETED
from storage.files.files import Files
from storage.log.moves import remove_if_there
from storage.log.parts import LogParts


def rename(parts: LogParts, name: str, goes_on: bool) -> None:
    """Give the directory another name beside its own; files that are open stay so.

    goes_on: the log is used on from there, and keeps its leader epochs.
    """
    local = parts.local
    path = os.path.join(os.path.dirname(local.place.path), name)
    with suppress(OSError):  # told by the next flush; on a full disk a log can still be deleted
        local.write_indexes()
    local.files.rename(local.place.path, path)
    local.files.sync_directory(os.path.dirname(path))
    local.place = replace(local.place, path=path)
    local.segments.move_to(path)
    parts.producers.move_to(path)
    parts.epochs.move_to(path)
    if not goes_on:
        parts.epochs.forget()


def delete(parts: LogParts) -> None:
    """Remove all segments, then the directory with whatever else is in it."""
    local = parts.local
    parts.epochs.forget()
    segments = list(local.segments)
    local.segments.clear()
    for segment in segments:
        if not segment.is_deleted:
            segment.change_suffix("", DELETED)
    for segment in segments:
        segment.delete()
    local.is_closed = True
    remove_tree(local.files, local.place.path)


def remove_tree(files: Files, path: str) -> None:
    """Remove a directory and all that is in it; one that is not there is no error."""
    if not files.is_directory(path):
        return
    for entry in files.list_directory(path):
        below = os.path.join(path, entry.name)
        if entry.is_dir:
            remove_tree(files, below)
        else:
            remove_if_there(files, below)
    files.remove_directory(path)
