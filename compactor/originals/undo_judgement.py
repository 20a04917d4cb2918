"""Whether a log is as a run left it, or as it was on the way there: then the run can be undone."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from compactor.host.shell_commands import compactor
from compactor.originals import kept_files
from compactor.originals.appended_since import check_appended
from compactor.originals.kept_manifest import FileMark, KeptStep, LogBefore
from compactor.originals.kept_run import KeptLog
from compactor.originals.log_states import (
    ChangedSinceError,
    State,
    difference,
    left_by,
    steps_done,
)
from compactor.originals.open_transactions import check_transactions
from storage.file_names import LOG, SWAP, file_name, parse_future_dir
from storage.files.files import Files
from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.formats.partition_metadata import topic_id_of
from storage.log.log_dir import PartitionListing, list_partition

MarkOf = Callable[[str, int], FileMark]  # of a file's first bytes, as they are or would be


def mark_on_disk(path: str, up_to: int) -> FileMark:
    """How the first bytes of a file are known again."""
    return kept_files.mark_of(path, up_to=up_to)


class UndoTask(NamedTuple):
    """A log that can be undone."""

    log: KeptLog
    path: str  # the partition directory
    steps: tuple[KeptStep, ...]  # that are still to be undone, in the order of the run
    log_start_was_raised: bool = False  # which is undone, too, before any segment has gone


class Checkpointed(NamedTuple):
    """What the checkpoints of a log directory say now."""

    cleaner: Mapping[TopicPartition, int]
    log_starts: Mapping[TopicPartition, int]


def read_checkpointed(log_dir: str, files: Files) -> Checkpointed:
    """Raise CorruptFileError or OSError."""
    names = checkpoint.CLEANER_OFFSET, checkpoint.LOG_START
    return Checkpointed(*(checkpoint.read(os.path.join(log_dir, name), files) for name in names))


def moves_to(log_dirs: Iterable[str], files: Files) -> dict[TopicPartition, str]:
    """By log that a broker has begun to move: the log directory that it copies it to."""
    return {
        key: log_dir
        for log_dir in filter(files.is_directory, log_dirs)
        for name in files.list_names(log_dir)[0]
        if (key := parse_future_dir(name)) is not None
    }


def check_not_moving(log: KeptLog, moves: Mapping[TopicPartition, str]) -> None:
    """Raise ChangedSinceError where a broker would put a copy in the place of what came back."""
    if log.key in moves:
        raise ChangedSinceError(
            f"it is being moved to {moves[log.key]}: the copy there (-future) would take the "
            "place of what came back; undo it when a broker has finished or cancelled the move"
        )


def judge(log: KeptLog, checkpointed: Checkpointed, mark_of: MarkOf = mark_on_disk) -> UndoTask:
    """Find the state of a log. Raise ChangedSinceError, CorruptFileError or OSError."""
    topic, partition = log.key
    path = os.path.join(log.log_dir, f"{topic}-{partition}")
    if log.before is None or not log.steps or log.access.exists(log.undone_file):
        return UndoTask(log._replace(steps=()), path, ())
    _check_topic_id(log.before.topic_id, topic_id_of(path, log.access))
    listing = list_partition(path, topic, partition, log.access)
    swaps = [name for name in listing.unfinished if name.endswith(SWAP)]
    if swaps:
        first = compactor("recover", log.log_dir)
        raise ChangedSinceError(f"{swaps[0]} belongs to an unfinished swap. First: {first}")
    done = _steps_done(log.before, log.steps, listing, mark_of)
    check_appended(listing, log.before)
    check_transactions(log, listing)
    _check_cleaner_offset(log.before, log.steps, checkpointed.cleaner.get(log.key, 0))
    log_start = checkpointed.log_starts.get(log.key)
    _check_log_start(log.before, log.steps, log_start)
    has_deleted = any(step.deleted_up_to is not None for step in log.steps)
    was_raised = has_deleted and log_start != log.before.log_start_offset
    return UndoTask(log, path, log.steps[:done], was_raised)


def _check_topic_id(kept: str | None, now: str | None) -> None:
    """A topic that was deleted and created anew under the same name has another one."""
    if now == kept:
        return
    known = None not in (now, kept)
    means = "deleted and created anew" if known else "it is not known whether it is the same topic"
    ids = f"its topic id is {now or 'missing'}, before the run it was {kept or 'missing'}"
    raise ChangedSinceError(f"{ids}: {means}")


def _steps_done(
    before: LogBefore, steps: Sequence[KeptStep], listing: PartitionListing, mark_of: MarkOf
) -> int:
    """How many steps of the run are in the log.

    All that the run left counts, and what it did not touch: a later cleaning may have dropped a
    tombstone anywhere, and what that had hidden, and the run has removed, would come back to life.
    """
    active = before.segments[-1]
    sizes = {file_name(segment.base_offset, LOG): segment.log_bytes for segment in listing.segments}
    sizes = {name: size for name, size in sizes.items() if name <= active.name}
    if active.name in sizes:  # a broker appends to it
        sizes[active.name] = min(sizes[active.name], active.size_bytes)
    found: State = {}
    if steps_done(sizes, before, steps, lambda mark: mark.size_bytes) is not None:
        found = {
            name: mark_of(os.path.join(listing.path, name), size) for name, size in sizes.items()
        }
        done = steps_done(found, before, steps, lambda mark: mark)
        if done is not None:
            return done
    left = left_by(before, steps)
    same = {name: mark for name, mark in left.items() if sizes.get(name) == mark.size_bytes}
    unread = {name: FileMark(name, size, "") for name, size in sizes.items()}
    removed = {mark.name for step in steps for mark in step.originals}
    raise ChangedSinceError(difference(found or {**unread, **same}, left, removed))


def _check_cleaner_offset(before: LogBefore, steps: Sequence[KeptStep], now: int) -> None:
    """A later cleaning that found nothing to drop has left no trace but this."""
    left_at = max(step.cleaned_to for step in steps)
    if now > max(left_at, before.cleaner_offset or 0):
        raise ChangedSinceError(
            f"cleaned since: its cleaner checkpoint is at {now}, the run left it at {left_at}"
        )


def _check_log_start(before: LogBefore, steps: Sequence[KeptStep], now: int | None) -> None:
    for step in steps:
        if step.deleted_up_to is not None and now not in (
            None,
            before.log_start_offset,
            step.deleted_up_to,
        ):
            raise ChangedSinceError(f"the log start was moved since, to {now}")
