"""Bring back what a run has replaced or deleted, from what it kept: the old log, byte for byte.

For each log directory, under its lock, with what is true if the power goes in the step:

0. what was cut short is settled, by `recovery.log_dir_recovery`
1. every log is compared with the states that its manifests describe: the log after the last step
   of the run, after the one before, and so on to the log before the run. One that is in none of
   them has been changed since, and is left as it is.
2. entries of cleaner-offset-checkpoint, then of log-start-offset-checkpoint, as before the run
   they are lower than the log calls for, or none: a cleaner begins earlier, a log start is where
   the first segment is. Not later: an old log under a new entry would count as clean, and a
   tombstone in it could go before what it hides. So a cleaner entry is never raised either
3. the leader epochs that retention cut off                   as after step 2
4. the steps of the run, the last one first: what was kept is staged and swapped in by `finalizer`,
   one group at a time, as what takes its place was; a deleted segment gets its names back, the
   .log last                  each step is done or is not: the log is in one of the states of 1
5. an active segment that retention made, if nothing was written to it             removed, or not
6. snapshots that went with merged segments                        they are brought back next time
7. it is written down that the log was undone                 it is written down next time; what a
                                                              broker does to the log after this step
                                                              is not taken for the run

So it can be run again at any time, and ends the same.
"""

import errno
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

from cleaner_jobs.messages import Source
from cleaner_jobs.source_identity import LogChangedError
from cleaner_jobs.staging import STAGED_MARKER, staged_suffix
from compactor.finalizer import StagedGroup, StagedSegment, mark_deleted, swap_group, sweep_staged
from compactor.log_dirs import kept_files
from compactor.log_dirs.directory_state import require_may_change
from compactor.log_dirs.kept_files import FileMark
from compactor.log_dirs.locked_log_dirs import conditions_of, lock_log_dirs, require_working_locks
from compactor.originals.kept_manifest import KeptRun, KeptStep
from compactor.originals.kept_run import KeptLog, read_logs, read_run
from compactor.originals.undo_judgement import (
    ChangedSinceError,
    Checkpointed,
    UndoTask,
    check_not_moving,
    judge,
    logs_of,
    moves_to,
    read_checkpointed,
)
from compactor.reason_codes import ReasonCode, error_text, reason_code_of
from compactor.recovery.log_dir_recovery import recover_log_dir
from storage.errors import CorruptFileError
from storage.file_names import INDEX_SUFFIXES, LOG, SEGMENT_SUFFIXES, SNAPSHOT, file_name, offset_of
from storage.files.files import Files, entry_of, size_of
from storage.files.local import LOCAL
from storage.files.overlay import OverlayFiles
from storage.formats import checkpoint, leader_epoch_checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT


class UndoStatus(StrEnum):
    """How the undo of one log ended."""

    UNDONE = "undone"
    AS_BEFORE = "as-before"  # the run had changed nothing, or was undone before
    REFUSED = "refused"  # changed since the run: left as it is
    FAILED = "failed"


class UndoReport(NamedTuple):
    """What became of one log."""

    log_dir: str
    topic: str
    partition: int
    status: UndoStatus
    reason: str | None = None
    reason_code: ReasonCode | None = None  # of the reason
    segments: int = 0  # brought back
    bytes: int = 0  # of their .log files


_PROBLEMS = (CorruptFileError, LogChangedError, OSError)


def undo_run(
    path: str, allowed_file_systems: Collection[str] = (), files: Files = LOCAL
) -> list[UndoReport]:
    """Undo the run that kept its originals at path, log by log; by log directory and name.

    Raise RefusedError where a log directory is in use, CorruptFileError at a damaged manifest.
    """
    run = read_run(path, files)
    logs = read_logs(path, run, files)
    log_dirs = _log_dirs_of(logs, files)
    # What it brings back is known by its checksums, and is not in the segments that a crash tears.
    with lock_log_dirs(log_dirs, allowed_file_systems, after_unclean_shutdown=True):
        return _undo_all(files, run, logs, log_dirs)


def undo_outlook(
    path: str, allowed_file_systems: Collection[str] = (), files: Files = LOCAL
) -> list[UndoReport]:
    """Return what `undo_run` would report, by an undo that changes memory alone and takes no lock.

    Raise what it would raise at its start. Room for copies of the originals is not checked.
    """
    overlay = OverlayFiles(files)
    try:
        run = read_run(path, files)
        logs = read_logs(path, run, overlay)
        log_dirs = _log_dirs_of(logs, files)
        require_working_locks(log_dirs, allowed_file_systems)
        for log_dir in log_dirs:
            for require in conditions_of(log_dir, after_unclean_shutdown=True):
                require()
            require_may_change(log_dir)
        return _undo_all(overlay, run, logs, log_dirs)
    finally:
        overlay.close()


def _log_dirs_of(logs: Iterable[KeptLog], files: Files) -> list[str]:
    """Those that are still there."""
    return list(filter(files.is_directory, dict.fromkeys(log.log_dir for log in logs)))


def _undo_all(
    files: Files, run: KeptRun, logs: Sequence[KeptLog], log_dirs: Sequence[str]
) -> list[UndoReport]:
    reports = []
    for log_dir in log_dirs:
        recover_log_dir(log_dir, files=files)  # what cannot be settled is refused below
    moves = moves_to(run.log_dirs, files)
    for log_dir, own in groupby(logs, key=lambda log: log.log_dir):
        if log_dir in log_dirs:
            reports += _undo_in(files, log_dir, list(own), moves)
        else:
            gone = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), log_dir)
            reports += [_failed(log, gone) for log in own]
    return reports


def _undo_in(
    files: Files, log_dir: str, logs: Sequence[KeptLog], moves: Mapping[TopicPartition, str]
) -> list[UndoReport]:
    try:
        checkpointed = read_checkpointed(log_dir, files)
    except _PROBLEMS as error:
        return [_failed(log, error) for log in logs]
    reports: dict[TopicPartition, UndoReport] = {}
    tasks = []
    for log in logs:
        try:
            check_not_moving(log, moves)
            tasks.append(judge(log, checkpointed))
        except ChangedSinceError as error:
            refused, code = UndoStatus.REFUSED, ReasonCode.CHANGED_MEANWHILE
            reports[log.key] = _report(log, refused, str(error), code)
        except _PROBLEMS as error:
            reports[log.key] = _failed(log, error)
    try:
        _restore_checkpoints(files, log_dir, checkpointed, tasks)
    except _PROBLEMS as error:
        reports |= {task.log.key: _failed(task.log, error) for task in tasks}
        tasks = []
    for task in tasks:
        try:
            reports[task.log.key] = _undo(task)
        except _PROBLEMS as error:
            with suppress(OSError):  # the first error counts; the next run sweeps it
                sweep_staged(files, task.path, STAGED_MARKER)
            reports[task.log.key] = _failed(task.log, error)
    return [reports[log.key] for log in logs]


def _restore_checkpoints(
    files: Files, log_dir: str, checkpointed: Checkpointed, tasks: Iterable[UndoTask]
) -> None:
    """Step 2. A log start is raised before anything is deleted; a cleaner entry after the swaps."""
    cleaned: dict[TopicPartition, int | None] = {}
    log_starts: dict[TopicPartition, int | None] = {}
    now = checkpointed.cleaner
    for log, _, steps, log_start_was_raised in tasks:
        assert log.before is not None or not log.steps
        # a broker that truncates a log lowers its entry, too: what was appended since is not clean
        before = log.before.cleaner_offset if log.before is not None else None
        if steps and (before is None or before < now.get(log.key, 0)):
            cleaned[log.key] = before
        if log.before is not None and log_start_was_raised:
            log_starts[log.key] = log.before.log_start_offset
    _restore(files, os.path.join(log_dir, checkpoint.CLEANER_OFFSET), now, cleaned)
    path = os.path.join(log_dir, checkpoint.LOG_START)
    _restore(files, path, checkpointed.log_starts, log_starts)


def _restore(
    files: Files,
    path: str,
    entries: Mapping[TopicPartition, int],
    before: Mapping[TopicPartition, int | None],
) -> None:
    """Take entries back to what they were; None: to none at all."""
    restored = dict(entries)
    for key, offset in before.items():
        if offset is None:
            restored.pop(key, None)
        else:
            restored[key] = offset
    if restored != entries:
        checkpoint.write(path, restored, files)


def _undo(task: UndoTask) -> UndoReport:
    log, path = task.log, task.path
    for step in log.steps:
        _bring_epochs_back(log, step, path)
    for step in reversed(task.steps):
        if step.put:
            _swap_back(log, step, path)
        else:
            _undelete(log, step, path)
    _remove_rolled(log, path)
    for step in log.steps:
        _bring_snapshots_back(log, step, path)
    log.access.sync_directory(path)
    if log.steps and not log.access.exists(log.undone_file):
        log.access.replace_file(log.undone_file, b"")
    brought = [mark for step in task.steps for mark in step.originals if mark.name.endswith(LOG)]
    has_undone = bool(task.steps) or task.log_start_was_raised
    status = UndoStatus.UNDONE if has_undone else UndoStatus.AS_BEFORE
    return _report(log, status, brought=brought)


def _bring_epochs_back(log: KeptLog, step: KeptStep, path: str) -> None:
    """Step 3: those that were cut off, before those that have come since."""
    for mark in step.originals:
        if mark.name != LEADER_EPOCH_CHECKPOINT:
            continue
        kept = log.file(step, mark.name)
        before = leader_epoch_checkpoint.read(kept, log.access)
        leader_epoch_checkpoint.check(before, kept)
        live = os.path.join(path, mark.name)
        now = leader_epoch_checkpoint.read(live, log.access)
        last_epoch = max((entry.epoch for entry in before), default=-1)
        merged = [*before, *(entry for entry in now if entry.epoch > last_epoch)]
        if merged == now:
            continue
        if merged == before:
            _bring_file_back(log, step, mark, path)
            log.access.sync_directory(path)
        else:
            leader_epoch_checkpoint.write(live, merged, log.access)


def _swap_back(log: KeptLog, step: KeptStep, path: str) -> None:
    """Step 4 of a group, as `finalizer` does it. A swap that was cut short has left originals."""
    names = {mark.name for mark in logs_of(step.put)}
    originals = (mark.name for mark in logs_of(step.originals))
    names |= {name for name in originals if log.access.exists(os.path.join(path, name))}
    # First: an original that is there still gets one more name, which changes its ctime.
    staged = _staged(log, step, path)
    sources = []
    for name in sorted(names):
        live = os.path.join(path, name)
        base_offset = offset_of(name)
        assert base_offset is not None
        sources.append(Source.of(live, base_offset, entry_of(log.access, live)))
    destinations = [
        StagedSegment(base, *(of_base.get(kind, "") for kind in SEGMENT_SUFFIXES))
        for base, of_base in sorted(staged.items())
    ]
    swap_group(log.access, StagedGroup(path, tuple(sources), tuple(destinations)))


def _undelete(log: KeptLog, step: KeptStep, path: str) -> None:
    """Step 4 of a segment that retention deleted."""
    for of_base in _staged(log, step, path).values():
        for kind in (*INDEX_SUFFIXES, LOG):
            if kind == LOG:
                log.access.sync_directory(path)  # without its indexes it would be recovered
            if kind in of_base:
                log.access.rename(of_base[kind], of_base[kind].partition(STAGED_MARKER)[0])
        log.access.sync_directory(path)


def _staged(log: KeptLog, step: KeptStep, path: str) -> dict[int, dict[str, str]]:
    """Bring the segments of a step beside the live ones; their names by base offset and kind."""
    suffix = staged_suffix(os.path.basename(os.path.dirname(log.path)), f"undo-{step.number}")
    staged: dict[int, dict[str, str]] = {}
    for mark in step.originals:
        base_offset, kind = offset_of(mark.name), f".{mark.name.partition('.')[2]}"
        if base_offset is None or kind not in SEGMENT_SUFFIXES:
            continue
        name = os.path.join(path, mark.name + suffix)
        kept_files.bring_back(log.access, mark, log.file(step, mark.name), name)
        staged.setdefault(base_offset, {})[kind] = name
    return staged


def _remove_rolled(log: KeptLog, path: str) -> None:
    """Step 5: whatever a broker has appended to stays."""
    for step in log.steps:
        if step.rolled_at is None:
            continue
        name = os.path.join(path, file_name(step.rolled_at, LOG))
        if log.access.exists(name) and not size_of(log.access, name):
            for deleted in mark_deleted(log.access, path, [step.rolled_at]):
                log.access.remove(deleted)


def _bring_snapshots_back(log: KeptLog, step: KeptStep, path: str) -> None:
    """Step 6."""
    for mark in step.originals:
        if mark.name.endswith(SNAPSHOT) and not log.access.exists(os.path.join(path, mark.name)):
            _bring_file_back(log, step, mark, path)


def _bring_file_back(log: KeptLog, step: KeptStep, mark: FileMark, path: str) -> None:
    live = os.path.join(path, mark.name)
    staged = live + staged_suffix("undo", str(step.number))
    kept_files.bring_back(log.access, mark, log.file(step, mark.name), staged)
    log.access.rename(staged, live)


def _failed(log: KeptLog, error: CorruptFileError | LogChangedError | OSError) -> UndoReport:
    return _report(log, UndoStatus.FAILED, error_text(error), reason_code_of(error))


def _report(
    log: KeptLog,
    status: UndoStatus,
    reason: str | None = None,
    code: ReasonCode | None = None,
    brought: Sequence[FileMark] = (),
) -> UndoReport:
    topic, partition = log.key
    return UndoReport(
        log_dir=log.log_dir,
        topic=topic,
        partition=partition,
        status=status,
        reason=reason,
        reason_code=code,
        segments=len(brought),
        bytes=sum(mark.size_bytes for mark in brought),
    )
