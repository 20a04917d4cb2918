"""Whether a log is as a run left it, or as it was on the way there: then the run can be undone."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from compactor.originals import kept_files
from compactor.originals.kept_manifest import FileMark, KeptStep, states_of
from compactor.originals.kept_run import KeptLog
from storage.file_names import LOG, SWAP, file_name
from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.log.log_dir import list_partition


class UndoTask(NamedTuple):
    """A log that can be undone."""

    log: KeptLog
    path: str  # the partition directory
    steps: tuple[KeptStep, ...]  # that are still to be undone, in the order of the run


class ChangedSinceError(Exception):
    """The log is not what the run left."""


class Checkpointed(NamedTuple):
    """What the checkpoints of a log directory say now."""

    cleaner: Mapping[TopicPartition, int]
    log_starts: Mapping[TopicPartition, int]


def read_checkpointed(log_dir: str) -> Checkpointed:
    """Raise CorruptFileError or OSError."""
    names = checkpoint.CLEANER_OFFSET, checkpoint.LOG_START
    return Checkpointed(*(checkpoint.read(os.path.join(log_dir, name)) for name in names))


def judge(log: KeptLog, checkpointed: Checkpointed) -> UndoTask:
    """Find the state of a log. Raise ChangedSinceError, CorruptFileError or OSError."""
    topic, partition = log.key
    path = os.path.join(log.log_dir, f"{topic}-{partition}")
    listing = list_partition(path, topic, partition)
    swaps = [name for name in listing.unfinished if name.endswith(SWAP)]
    if swaps:
        raise ChangedSinceError(f"{swaps[0]} is of an unfinished swap: recover it first")
    live = {file_name(segment.base_offset, LOG) for segment in listing.segments}
    found: dict[str, FileMark | None] = {}
    states = [
        {name: mark for name, mark in state.items() if name.endswith(LOG)}
        for state in states_of(log.steps)
    ]
    for name in states[0]:
        found[name] = kept_files.mark_of(os.path.join(path, name)) if name in live else None
    rolled = {file_name(s.rolled_at, LOG) for s in log.steps if s.rolled_at is not None}
    done = next((n for n in range(len(states) - 1, -1, -1) if _is(found, states[n], rolled)), None)
    if done is None:
        raise ChangedSinceError(_difference(found, states[-1]))
    _check_cleaner_offset(log, checkpointed.cleaner.get(log.key, 0))
    _check_log_start(log, checkpointed.log_starts.get(log.key))
    return UndoTask(log, path, log.steps[:done])


def _is(
    found: Mapping[str, FileMark | None], state: Mapping[str, FileMark | None], rolled: set[str]
) -> bool:
    return all(found[name] == mark for name, mark in state.items() if name not in rolled)


def _difference(
    found: Mapping[str, FileMark | None], expected: Mapping[str, FileMark | None]
) -> str:
    """The first file that is not what the run left."""
    for name in sorted(expected):
        now, then = found[name], expected[name]
        if now == then:
            continue
        if now is None:
            return f"{name}, which the run left, is gone: deleted or cleaned again"
        if then is None:
            return f"{name}, which the run removed, is there again"
        if now.size_bytes != then.size_bytes:
            return f"{name} has {now.size_bytes} bytes, the run left {then.size_bytes}"
        return f"{name} has other bytes than those that the run left"
    raise AssertionError("the log is as the run left it")


def _check_cleaner_offset(log: KeptLog, now: int) -> None:
    """A later cleaning may have dropped a tombstone, or a record, in groups that the run left as
    they were: what that had hidden, and the run has removed, would come back to life.
    """
    left_at = max((s.cleaned_to for s in log.steps), default=now)
    if now > max(left_at, *(s.cleaner_offset or 0 for s in log.steps), 0):
        raise ChangedSinceError(
            f"cleaned since: its cleaner checkpoint is at {now}, the run left it at {left_at}"
        )


def _check_log_start(log: KeptLog, now: int | None) -> None:
    for step in log.steps:
        if step.deleted_up_to is not None and now not in (
            None,
            step.log_start_offset,
            step.deleted_up_to,
        ):
            raise ChangedSinceError(f"the log start was moved since, to {now}")
