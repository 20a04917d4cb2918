"""Read, discard and lock what earlier runs have kept.

The lock (flock) is on the manifest of the run, and ends with the process that has it. The run and
an undo, which need what is kept, share it; a discard has it alone. A discard renames the manifest
while it has the lock, so that a process that gets the lock afterwards notices.
"""

import errno
import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from compactor.errors import RefusedError
from compactor.originals.kept_manifest import (
    DISCARDED_FILE,
    LOG_FILE,
    RUN_FILE,
    UNDONE_FILE,
    KeptRun,
    KeptStep,
    LogBefore,
    parse,
    step_number,
)
from compactor.reason_codes import ReasonCode
from storage.errors import CorruptFileError
from storage.file_names import parse_partition_dir
from storage.files.descriptors import naming
from storage.files.files import Disk, Files
from storage.files.local import LOCAL
from storage.formats.checkpoint import TopicPartition

_RUN_ID = re.compile(r"[0-9a-f]{8,32}", re.ASCII)
WAIT_SECONDS = 10.0  # who looks whether a run is at work has the lock for an instant
LOOK_SECONDS = 0.01
_WITHOUT_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)


class KeptLog(NamedTuple):
    """What was kept of one log."""

    log_dir: str
    key: TopicPartition
    path: str  # of what was kept
    before: LogBefore | None  # None: no step was begun
    steps: tuple[KeptStep, ...]  # in the order of the run
    access: Files = LOCAL  # by which it is brought back

    @property
    def undone_file(self) -> str:
        """Exists once all of it was brought back."""
        return os.path.join(self.path, UNDONE_FILE)

    def file(self, step: KeptStep, name: str) -> str:
        return os.path.join(self.path, f"{step.number:06d}", name)


def read_run(path: str, files: Files = LOCAL) -> KeptRun:
    """Raise OSError or CorruptFileError where a directory is not one that a run has kept."""
    manifest = os.path.join(path, RUN_FILE)
    return parse(KeptRun, files.read_bytes(manifest), manifest)


def read_logs(path: str, run: KeptRun, files: Files = LOCAL) -> list[KeptLog]:
    """Every log of which something was kept, by log directory and name.

    Raise OSError, CorruptFileError, or RefusedError where an older version has kept it.
    """
    logs = []
    for number, log_dir in enumerate(run.log_dirs):
        directory = os.path.join(path, str(number))
        if not files.is_directory(directory):
            continue
        for entry in sorted(files.list_directory(directory)):
            key = parse_partition_dir(entry.name)
            if key is not None and entry.is_dir:
                log = os.path.join(directory, entry.name)
                before, steps = _kept(files, log)
                logs.append(
                    KeptLog(
                        log_dir=log_dir, key=key, path=log, before=before, steps=steps, access=files
                    )
                )
    return logs


def discard(path: str, disk: Disk = LOCAL) -> None:
    """Remove what a run has kept. Raise as read_run; RefusedError while its run, or an undo, works.

    1. the manifest of the run gets another name; sync   from now on nothing can be undone
    2. what was kept is removed, that manifest last      cut short, it is gone on with by the next
                                                         discard or run
    """
    discarded = os.path.join(path, DISCARDED_FILE)
    if not disk.exists(discarded):
        read_run(path, disk)
        with held_exclusively(path, disk):
            disk.rename(os.path.join(path, RUN_FILE), discarded)
        disk.sync_directory(path)
    run = parse(KeptRun, disk.read_bytes(discarded), discarded)
    for number, _ in enumerate(run.log_dirs):
        log_dir = os.path.join(path, str(number))
        if disk.exists(log_dir):
            disk.remove_tree(log_dir)
    disk.remove(discarded)
    disk.remove_directory(path)
    disk.sync_directory(os.path.dirname(os.path.abspath(path)))


def discard_expired(
    directory: str,
    started_before_ms: int,
    before_each: Callable[[], None],
    disk: Disk = LOCAL,
) -> list[str]:
    """Discard what runs have kept in a directory that began before a time; their directories.

    before_each: is called before anything is changed of one; an error may come after that.
    """
    if not disk.is_directory(directory):
        return []
    expired = []
    for entry in sorted(disk.list_directory(directory)):
        path = os.path.join(directory, entry.name)
        if not entry.is_dir or not _RUN_ID.fullmatch(entry.name):
            continue
        if not disk.exists(os.path.join(path, DISCARDED_FILE)):
            if not disk.exists(os.path.join(path, RUN_FILE)):
                continue  # another's, or one that was never begun
            if read_run(path, disk).started_at_ms >= started_before_ms or is_held(path, disk):
                continue
        before_each()
        discard(path, disk)
        expired.append(path)
    return expired


@contextmanager
def held(path: str, disk: Disk = LOCAL) -> Iterator[None]:
    """Let nobody discard what is kept at path for the length of a block.

    Raise RefusedError where that is not to be had: nobody may go on without it.
    """
    manifest = os.path.join(path, RUN_FILE)
    with _opened(manifest, os.O_RDONLY, disk) as descriptor:
        _share(descriptor, manifest, time.monotonic() + WAIT_SECONDS)
        _require_same_file(descriptor, manifest, disk)
        yield


@contextmanager
def held_exclusively(path: str, disk: Disk = LOCAL) -> Iterator[None]:
    """Hold the lock on the kept files at path. RefusedError if another process has it."""
    manifest = os.path.join(path, RUN_FILE)
    # to be written to, or a network file system would not lock it for one alone
    with _opened(manifest, os.O_RDWR, disk) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            problem = "locked: its run, or an undo of it, is still at work"
            raise RefusedError(f"{manifest}: {problem}", ReasonCode.LOCK_HELD) from error
        except OSError as error:
            if error.errno not in _WITHOUT_LOCKS:  # there nobody can hold it
                raise
        yield


def is_held(path: str, disk: Disk = LOCAL) -> bool:
    """Whether a run, or an undo, is at work on what is kept at path."""
    try:
        with held_exclusively(path, disk):
            return False
    except RefusedError:
        return True


@contextmanager
def _opened(manifest: str, flags: int, disk: Disk) -> Iterator[int]:
    descriptor = disk.open_descriptor(manifest, flags | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _kept(files: Files, path: str) -> tuple[LogBefore | None, tuple[KeptStep, ...]]:
    steps = _steps(files, path)  # first: those of an older version say so
    manifest = os.path.join(path, LOG_FILE)
    if not steps and not files.exists(manifest):
        return None, ()
    return parse(LogBefore, files.read_bytes(manifest), manifest), steps


def _steps(files: Files, path: str) -> tuple[KeptStep, ...]:
    names = [entry.name for entry in files.list_directory(path) if not entry.is_dir]
    steps: list[KeptStep] = []
    for name in sorted(name for name in names if step_number(name) is not None):
        manifest = os.path.join(path, name)
        step = parse(KeptStep, files.read_bytes(manifest), manifest)
        if step.number != step_number(name) or step.number != len(steps):
            raise CorruptFileError(manifest, 0, f"step {step.number}, expected {len(steps)}")
        steps.append(step)
    return tuple(steps)


def _share(descriptor: int, manifest: str, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                problem = (
                    "another process keeps it locked, and may be discarding what is kept there"
                )
                raise RefusedError(f"{manifest}: {problem}", ReasonCode.LOCK_HELD) from error
        except OSError as error:
            problem = f"cannot be locked: {error.strerror}; keep originals where locks work"
            raise RefusedError(f"{manifest}: {problem}", ReasonCode.FILE_SYSTEM) from error
        time.sleep(LOOK_SECONDS)


def _require_same_file(descriptor: int, manifest: str, disk: Disk) -> None:
    try:
        with naming(manifest):
            held = os.fstat(descriptor)
        if os.path.samestat(held, disk.status(manifest, follow=False)):
            return
    except FileNotFoundError:
        pass
    problem = "discarded by another process while it was being locked"
    raise RefusedError(f"{manifest}: {problem}", ReasonCode.CHANGED_MEANWHILE)
