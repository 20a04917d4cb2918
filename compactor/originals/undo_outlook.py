"""Say what an undo would bring back now. Changes nothing, and takes no lock.

What was cut short is settled in memory alone, since an undo settles it first. The originals are
read, and compared with their checksums. Room for copies of them is not checked.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from itertools import groupby

import xxhash

from compactor.log_dirs import kept_files
from compactor.log_dirs.directory_state import require_may_change
from compactor.log_dirs.kept_files import FileMark
from compactor.log_dirs.locked_log_dirs import conditions_of, require_working_locks
from compactor.originals.kept_run import KeptLog, read_logs, read_run
from compactor.originals.undo import PROBLEMS, UndoReport, failed, judge_logs, no_log_dir, undo_log
from compactor.originals.undo_judgement import (
    Checkpointed,
    UndoTask,
    moves_to,
    read_checkpointed,
)
from compactor.recovery.log_dir_recovery import recover_log_dir
from storage.file_names import SNAPSHOT
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.files.overlay import OverlayFiles
from storage.formats.checkpoint import TopicPartition

_READ_BYTES = 8 << 20  # at once


def undo_outlook(
    path: str, allowed_file_systems: Collection[str] = (), files: Files = LOCAL
) -> list[UndoReport]:
    """Return what `undo_run` would report of each log. Raise what it would raise at its start."""
    overlay = OverlayFiles(files)
    try:
        run = read_run(path, files)
        logs = read_logs(path, run, overlay)
        log_dirs = dict.fromkeys(log.log_dir for log in logs)
        found = [log_dir for log_dir in log_dirs if files.is_directory(log_dir)]
        require_working_locks(found, allowed_file_systems)
        for log_dir in found:
            for require in conditions_of(log_dir, after_unclean_shutdown=True):
                require()
            require_may_change(log_dir)
        for log_dir in found:
            recover_log_dir(log_dir, files=overlay)
        moves = moves_to(run.log_dirs, overlay)
        reports: list[UndoReport] = []
        for log_dir, own in groupby(logs, key=lambda log: log.log_dir):
            reports += _outlook_in(overlay, log_dir, own, moves)
        return reports
    finally:
        overlay.close()


def _outlook_in(
    files: OverlayFiles, log_dir: str, logs: Iterable[KeptLog], moves: Mapping[TopicPartition, str]
) -> list[UndoReport]:
    try:
        if not files.is_directory(log_dir):
            raise no_log_dir(log_dir)
        checkpointed = read_checkpointed(log_dir, files)
    except PROBLEMS as error:
        return [failed(log, error) for log in logs]
    return [_outlook(files, log, checkpointed, moves) for log in logs]


def _outlook(
    files: OverlayFiles,
    log: KeptLog,
    checkpointed: Checkpointed,
    moves: Mapping[TopicPartition, str],
) -> UndoReport:
    found = judge_logs(log, checkpointed, moves, partial(_mark_seen, files))
    if isinstance(found, UndoReport):
        return found
    try:
        _require_originals(found)
    except PROBLEMS as error:
        return failed(log, error)
    return undo_log(found)


def _mark_seen(files: OverlayFiles, path: str, up_to: int) -> FileMark:
    """Return the mark of the first bytes of a file that may be in memory alone."""
    digest, size_bytes = xxhash.xxh3_64(), 0
    with files.open(path) as file:
        while data := file.read(size_bytes, min(_READ_BYTES, up_to - size_bytes)):
            digest.update(data)
            size_bytes += len(data)
    return FileMark(os.path.basename(path), size_bytes, digest.hexdigest())


def _require_originals(task: UndoTask) -> None:
    """Raise CorruptFileError where what would be brought back is not what was kept."""
    log = task.log
    for step in log.steps:
        for mark in step.originals:
            is_lacking = not log.access.exists(os.path.join(task.path, mark.name))
            if step not in task.steps and not (mark.name.endswith(SNAPSHOT) and is_lacking):
                continue
            source = log.file(step, mark.name)
            kept_files.require_kept(mark, kept_files.mark_of(source), source)
