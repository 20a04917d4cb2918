"""Copies the contents of a log directory into an empty one; the original is only read.

1. The contents are listed: this is the moment that the copy is of.
2. Files of the log directory itself are copied, then those of the logs, several at once.
3. The contents are listed again. A log that has changed in between is removed from the copy, with
   its entries in the checkpoints, and reported; so is one that could not be read.
"""

import os
import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from compactor.copying.contents import Contents, LogFiles, contents_of, what_changed
from compactor.log_dirs.kept_files import CANNOT_LINK
from compactor.reason_codes import error_text
from storage.errors import CorruptFileError
from storage.files.files import Disk, Files
from storage.formats import checkpoint
from storage.log.log_dir import partition_of

COPY_THREADS = 4  # they wait for the disk, or the kernel copies for them


class _Job(NamedTuple):
    """One file to be copied."""

    log: str  # "": of the log directory itself
    source: str
    target: str
    is_link: bool = False  # a second name, and no copy


class ToCopy(NamedTuple):
    """What is to be copied, and how."""

    contents: Contents
    is_wanted: Callable[[str], bool]  # of topics: by what the contents were listed
    link: bool  # give large files that nobody changes in place a second name


@dataclass(slots=True)
class CopiedLogDir:
    """A log directory as it was copied."""

    contents: Contents
    path: str  # of the copy
    missing: dict[str, str] = field(default_factory=dict)  # log -> why it is not in the copy
    is_linked: bool = False  # where a file is large and nobody changes it in place
    not_owned: int = 0  # files and directories that belong to us, and not to their owner


def copy_log_dir(
    wanted: ToCopy, path: str, advance: Callable[[int], object], disk: Disk
) -> CopiedLogDir:
    """Copy the listed contents into path, an empty directory whose lock the caller holds.

    Nothing is on disk for certain until `sync_file_system`. Raise OSError where the copy cannot be
    written.

    advance: is called with bytes that were copied since the last call, by one thread at a time.
    """
    contents, is_wanted, link = wanted
    copied = CopiedLogDir(contents, path, is_linked=link)
    for log in contents.logs:
        if log.problem is not None:
            copied.missing[log.name] = log.problem
            continue
        target = os.path.join(path, log.name)
        try:
            has_owner = disk.clone_directory(os.path.join(contents.path, log.name), target)
        except FileNotFoundError:
            continue  # gone: the second look tells it
        copied.not_owned += not has_owner
    copying = _Copying(copied, advance, disk)
    copying.copy(_Job("", _in(contents.path, e.name), _in(path, e.name)) for e in contents.files)
    copying.copy(_jobs_of_logs(contents, path, link))
    _leave_out_changed(copied, contents_of(contents.path, is_wanted, disk))
    for log in contents.logs:
        target = os.path.join(path, log.name)
        if log.name in copied.missing and disk.exists(target):
            _remove(target, disk)
    gone = {*copied.missing, *contents.not_wanted}
    _forget({key for name in gone if (key := partition_of(name)) is not None}, path, disk)
    return copied


def _in(directory: str, name: str) -> str:
    return os.path.join(directory, name)


def _jobs_of_logs(contents: Contents, path: str, link: bool) -> Iterable[_Job]:
    for log in contents.logs:
        if log.problem is None:
            linkable = log.linkable if link else frozenset()
            for entry in log.files:
                name = os.path.join(log.name, entry.name)
                is_link = entry.name in linkable
                yield _Job(log.name, _in(contents.path, name), _in(path, name), is_link)


class _Copying:
    """Copies files, several at once; an error at one of a log ends the copying of that log."""

    def __init__(self, copied: CopiedLogDir, advance: Callable[[int], object], disk: Disk) -> None:
        self._copied, self._advance, self._disk = copied, advance, disk
        self._lock, self._is_over = threading.Lock(), threading.Event()
        self._error: BaseException | None = None

    def copy(self, jobs: Iterable[_Job]) -> None:
        """Return when all are copied; raise the first error that is not a source's."""
        waiting: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        for job in jobs:
            waiting.put(job)
        threads = ThreadPoolExecutor(COPY_THREADS)
        try:
            for worker in [threads.submit(self._work, waiting) for _ in range(COPY_THREADS)]:
                worker.result()
        except BaseException:  # an interruption
            self._is_over.set()
            raise
        finally:
            threads.shutdown()
        if self._error is not None:
            raise self._error

    def _work(self, waiting: "queue.SimpleQueue[_Job]") -> None:
        try:
            while not self._is_over.is_set():
                job = waiting.get_nowait()
                if job.log not in self._copied.missing:
                    self._copy(job)
        except queue.Empty:
            return
        except BaseException as error:
            self._error = self._error or error
            self._is_over.set()

    def _copy(self, job: _Job) -> None:
        try:
            if job.is_link and self._link(job):
                return
            has_owner = self._disk.clone_file(job.source, job.target, self._count).has_owner
        except (OSError, CorruptFileError) as error:
            is_ours = isinstance(error, OSError) and error.filename == job.target
            if is_ours or not (job.log or isinstance(error, FileNotFoundError)):
                raise
            if job.log:  # else a broker has removed it: then it is not in the copy
                with self._lock:
                    self._copied.missing[job.log] = error_text(error)
            return
        if not has_owner:
            with self._lock:
                self._copied.not_owned += 1

    def _link(self, job: _Job) -> bool:
        """Whether it could be: else it is copied."""
        try:
            self._disk.link(job.source, job.target)
        except OSError as error:
            if error.errno not in CANNOT_LINK:
                raise
            return False
        return True

    def _count(self, size_bytes: int) -> None:
        if self._is_over.is_set():
            raise _StoppedError
        with self._lock:
            self._advance(size_bytes)


class _StoppedError(Exception):
    """Another thread has failed, or the run is interrupted."""


def _leave_out_changed(copied: CopiedLogDir, now: Contents) -> None:
    found: dict[str, LogFiles] = {log.name: log for log in now.logs}
    for log in copied.contents.logs:
        if log.name not in copied.missing:
            changed = what_changed(log, found.pop(log.name, None), copied.is_linked)
            if changed is not None:
                problem = f"changed while it was copied ({changed}): it is in use"
                copied.missing[log.name] = problem
    for name in found.keys() - {log.name for log in copied.contents.logs}:
        copied.missing[name] = "came while the others were copied: the log directory is in use"


def _remove(path: str, files: Files) -> None:
    for entry in files.list_directory(path):
        files.remove(os.path.join(path, entry.name))
    files.remove_directory(path)


def _forget(logs: set[tuple[str, int]], path: str, files: Files) -> None:
    """Remove the entries of logs that are not in the copy. A damaged file stays as it is."""
    for name in checkpoint.ALL if logs else ():
        of_copy = os.path.join(path, name)
        try:
            before = checkpoint.read(of_copy, files)
        except CorruptFileError:
            continue
        left = {key: offset for key, offset in before.items() if key not in logs}
        if left != before:
            checkpoint.write(of_copy, left, files)
