"""What is in a copy, file by file, and whether that is what its manifest says."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from compactor.copying.manifest import Manifest
from compactor.log_dirs.directory_state import MANIFEST, NO_BROKER, UNFINISHED
from compactor.originals.kept_files import mark_of
from compactor.originals.kept_manifest import FileMark
from compactor.verification.verify_batches import Finding, difference, finding_of
from storage.errors import CorruptFileError
from storage.files.files import Files
from storage.log.log_dir_lock import LOCK_FILE

READ_THREADS = 4
_NOT_LISTED = (MANIFEST, LOCK_FILE)
_OUR_DIRECTORIES = (UNFINISHED, NO_BROKER)


def files_in(log_dir: str, files: Files) -> dict[str, int]:
    """Every file of a copy by its name relative to it, with its size; but for the manifest."""
    found = {}
    for entry in files.list_directory(log_dir):
        if not entry.is_dir and entry.name not in _NOT_LISTED:
            found[entry.name] = entry.size_bytes
        elif entry.is_dir and entry.name not in _OUR_DIRECTORIES:
            for file in files.list_directory(os.path.join(log_dir, entry.name)):
                found[os.path.join(entry.name, file.name)] = file.size_bytes
    return dict(sorted(found.items()))


def marks_of(log_dir: str, names: list[str], advance: Callable[[int], object]) -> list[FileMark]:
    """Length and checksum of each file. advance: is called with bytes read since the last call."""
    marks = []
    for _, found in _read(log_dir, names, advance):
        if not isinstance(found, FileMark):
            raise found
        marks.append(found)
    return marks


def _read(
    log_dir: str, names: list[str], advance: Callable[[int], object]
) -> Iterator[tuple[str, FileMark | OSError | CorruptFileError]]:
    """Several at once; in the order of the names, each with its mark, or why it has none."""

    def mark(name: str) -> FileMark | OSError | CorruptFileError:
        try:
            return mark_of(os.path.join(log_dir, name), name)
        except (OSError, CorruptFileError) as error:
            return error

    threads = ThreadPoolExecutor(READ_THREADS)
    try:
        for name, found in zip(names, threads.map(mark, names), strict=True):
            if isinstance(found, FileMark):
                advance(found.size_bytes)
            yield name, found
    finally:
        threads.shutdown(cancel_futures=True)


def check(
    log_dir: str, manifest: Manifest, advance: Callable[[int], object], files: Files
) -> Iterator[Finding]:
    """Whether the files are those of the manifest: none else, none gone, none other; and whether
    the run that made the copy has finished it.
    """
    unfinished = os.path.join(log_dir, UNFINISHED)
    if files.exists(unfinished):
        yield difference(unfinished, 0, "the run that made this copy has not finished it")
    found = files_in(log_dir, files)
    listed = {mark.name: mark for mark in manifest.files}
    for name in sorted(found.keys() - listed.keys()):
        yield difference(os.path.join(log_dir, name), 0, f"not in {MANIFEST}: it came later")
    for name, mark in listed.items():
        path = os.path.join(log_dir, name)
        if name not in found:
            yield difference(path, 0, f"is gone; {MANIFEST} has it")
        elif found[name] != mark.size_bytes:
            problem = f"has {found[name]:,} bytes, in {MANIFEST} {mark.size_bytes:,}"
            yield difference(path, 0, problem)
    same_size = [name for name, mark in listed.items() if found.get(name) == mark.size_bytes]
    for name, read in _read(log_dir, same_size, advance):
        path = os.path.join(log_dir, name)
        if not isinstance(read, FileMark):
            yield finding_of(read, path)
        elif read.checksum != listed[name].checksum:
            yield difference(path, 0, f"has other bytes than {MANIFEST} says")
