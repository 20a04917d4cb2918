"""Judge whether a log is in a state that a run took it through, so that the run can be undone.

- Its `.log` files are those of one of these states (`steps_done`).
- All that was appended to the log since the run is still in it, batch for batch (`check_appended`).
  Brokers give offsets without a gap. Where one is missing, or a batch has a delete horizon, a
  cleaning has gone over it, and a tombstone may be gone that hid what an undo would bring back. A
  replica that was copied from one that had been cleaned looks the same, and is taken for the same.
- Brokers still know the transactions that were open in what the run has deleted
  (`check_transactions`). A broker that starts where nothing is left of a transaction may forget it.
  An abort marker that it writes then gets no entry in a `.txnindex`, and records that came back
  would pass for committed.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple, TypeVar

from compactor.host.printable import offset_range
from compactor.host.shell_commands import compactor
from compactor.log_dirs.kept_files import FileMark, mark_of
from compactor.originals.kept_manifest import KeptStep, LogBefore
from compactor.originals.kept_run import KeptLog
from storage.errors import CorruptFileError
from storage.file_names import LOG, SNAPSHOT, SWAP, TXN_INDEX, file_name, parse_future_dir
from storage.files.files import Files
from storage.formats import checkpoint, legacy_messages, producer_snapshot, txn_index
from storage.formats.batch_header import MAGIC
from storage.formats.checkpoint import TopicPartition
from storage.formats.control_record import ControlType
from storage.formats.partition_metadata import topic_id_of
from storage.formats.record_batch import BatchHeader
from storage.log.log_dir import PartitionListing, list_partition
from storage.log.segment_reader import read_batch_headers, read_marker

State = Mapping[str, FileMark]  # every .log by name
_Seen = TypeVar("_Seen")  # what is known of a file, and compared


class ChangedSinceError(Exception):
    """The log is not what the run left."""


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


def judge(log: KeptLog, checkpointed: Checkpointed) -> UndoTask:
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
    done = _steps_done(log.before, log.steps, listing)
    check_appended(listing, log.before)
    check_transactions(log, listing)
    _check_cleaner_offset(log.before, log.steps, checkpointed.cleaner.get(log.key, 0))
    log_start = checkpointed.log_starts.get(log.key)
    _check_log_start(log.before, log.steps, log_start)
    has_deleted = any(step.deleted_up_to is not None for step in log.steps)
    was_raised = has_deleted and log_start != log.before.log_start_offset
    return UndoTask(log, path, log.steps[:done], was_raised)


def check_appended(listing: PartitionListing, before: LogBefore) -> None:
    """Raise ChangedSinceError where something of it is missing, CorruptFileError or OSError.

    A torn end is left to the recovery of the log.
    """
    files, segments = listing.access, listing.segments
    active = before.segments[-1]
    end_offset = before.end_offset
    for segment in segments:
        name = file_name(segment.base_offset, LOG)
        if name < active.name:
            continue
        start = active.size_bytes if name == active.name else 0
        if name != active.name and segment.base_offset != end_offset:
            raise _missing(name, end_offset, segment.base_offset)
        try:
            path = os.path.join(listing.path, name)
            for position, header in read_batch_headers(path, start, files=files):
                extent = _extent(files, path, position, header)
                _check_batch(name, header, extent, end_offset)
                end_offset = header.next_offset
        except CorruptFileError:
            if segment != segments[-1]:
                raise


def check_transactions(log: KeptLog, listing: PartitionListing) -> None:
    """Raise ChangedSinceError where one of them is forgotten, CorruptFileError or OSError.

    One is known that the newest snapshot has as open, that was committed, or whose abortion stands
    in a `.txnindex`.
    """
    deleted = [
        log.file(step, mark.name)
        for step in log.steps
        if step.deleted_up_to is not None
        for mark in logs_of(step.originals)
    ]
    open_since = _open_at_end(deleted, listing.access)
    if not open_since:
        return
    known = _open_in_snapshot(listing) | {
        (entry.producer_id, entry.first_offset)
        for segment in listing.segments
        for entry in txn_index.read(_file(listing, segment.base_offset, TXN_INDEX), listing.access)
    }
    unknown = {key for key in open_since.items() if key not in known}
    live = [_file(listing, segment.base_offset, LOG) for segment in listing.segments]
    for producer_id, first_offset in sorted(unknown):
        if not _is_committed(producer_id, live, listing.access):
            raise ChangedSinceError(
                f"a broker has forgotten the transaction of producer {producer_id} that began at "
                f"offset {first_offset}, in what the run deleted: its records would come back as "
                "if they were committed"
            )


def left_by(before: LogBefore, steps: Sequence[KeptStep]) -> State:
    """The log after the last step.

    An active segment that retention made is not in it: it counts as written since.
    """
    state = {mark.name: mark for mark in before.segments}
    for step in steps:
        for mark in logs_of(step.originals):
            state.pop(mark.name, None)
        state |= {mark.name: mark for mark in logs_of(step.put)}
    return state


def steps_done(
    files: Mapping[str, _Seen],
    before: LogBefore,
    steps: Sequence[KeptStep],
    seen: Callable[[FileMark], _Seen],
) -> int | None:
    """How many steps are in the log; None where it is in no state that the run takes it through.

    seen: what of a file is compared with the log's. The last step counts where recovery has
    settled its swap and left the last of the sources, of which nothing is in what took their place.
    """
    state = {name: seen(mark) for name, mark in left_by(before, steps).items()}
    wrong = {name for name in files.keys() | state.keys() if files.get(name) != state.get(name)}
    for done, step in zip(range(len(steps), 0, -1), reversed(steps), strict=True):
        if not wrong:
            return done
        is_left_over = wrong == _left_over(files, step, seen)
        for mark in logs_of(step.put):
            state.pop(mark.name, None)
        state |= {mark.name: seen(mark) for mark in logs_of(step.originals)}
        for mark in logs_of((*step.put, *step.originals)):
            if files.get(mark.name) == state.get(mark.name):
                wrong.discard(mark.name)
            else:
                wrong.add(mark.name)
        if wrong and is_left_over:
            return done
    return None if wrong else 0


def logs_of(marks: Iterable[FileMark]) -> list[FileMark]:
    """Of their .log files, by base offset."""
    return sorted(mark for mark in marks if mark.name.endswith(LOG))


def difference(current: State, left: State, removed: Set[str]) -> str:
    """Name the first file that is not what the run left, which must exist. removed: by the run."""
    for name in sorted(current.keys() | left.keys()):
        now, then = current.get(name), left.get(name)
        if now == then:
            continue
        if now is None:
            return f"{name}, which the run left, is gone: deleted or cleaned again"
        if then is None:
            what = "which the run removed, is there again"
            return f"{name}, {what if name in removed else 'which the run did not leave there'}"
        if now.size_bytes != then.size_bytes:
            return f"{name} has {now.size_bytes} bytes, the run left {then.size_bytes}"
        return f"{name} has other bytes than those that the run left"
    raise AssertionError("the log is as the run left it")


def _left_over(
    files: Mapping[str, _Seen], step: KeptStep, seen: Callable[[FileMark], _Seen]
) -> set[str]:
    """The last sources of a swap that still exist."""
    put, left = {mark.name for mark in step.put}, set()
    for mark in reversed(logs_of(step.originals)):
        if not put or mark.name in put or files.get(mark.name) != seen(mark):
            break
        left.add(mark.name)
    return left


def _check_topic_id(kept: str | None, now: str | None) -> None:
    """A topic that was deleted and recreated under the same name has another one."""
    if now == kept:
        return
    known = None not in (now, kept)
    means = "deleted and created anew" if known else "it is not known whether it is the same topic"
    ids = f"its topic id is {now or 'missing'}, before the run it was {kept or 'missing'}"
    raise ChangedSinceError(f"{ids}: {means}")


def _steps_done(before: LogBefore, steps: Sequence[KeptStep], listing: PartitionListing) -> int:
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
            name: mark_of(listing.access, os.path.join(listing.path, name), up_to=size)
            for name, size in sizes.items()
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
    """A later cleaning that dropped nothing has left no trace but this."""
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


def _check_batch(name: str, header: BatchHeader, extent: tuple[int, int], end_offset: int) -> None:
    """Whether a batch begins at the end of the log before it, and has all of its records."""
    first_offset, count = extent
    if first_offset != end_offset:
        raise _missing(name, end_offset, first_offset)
    if count != header.next_offset - first_offset:
        raise _missing(name, first_offset, header.next_offset, "some of ")
    if header.delete_horizon_ms is not None:
        seen = f"the batch at offset {first_offset} has a delete horizon"
        raise ChangedSinceError(f"cleaned since: {name}, written after the run: {seen}")


def _extent(files: Files, path: str, position: int, header: BatchHeader) -> tuple[int, int]:
    """The first offset of a batch, and how many records it has."""
    if header.magic == MAGIC or not header.codec:
        return header.base_offset, header.records_count
    entry = files.read_range(path, position, header.size_bytes)
    records = legacy_messages.decode_records(entry, header, path, position)
    return records[0].offset, len(records)


def _missing(name: str, first: int, end: int, share: str = "") -> ChangedSinceError:
    seen = f"missing: {share}{offset_range(first, end - 1)}"
    return ChangedSinceError(f"cleaned or deleted since: {name}, written after the run: {seen}")


class _TransactionalBatch(NamedTuple):
    path: str  # of a .log file
    position: int
    header: BatchHeader


def _open_at_end(paths: Sequence[str], files: Files) -> dict[int, int]:
    """First offsets of the transactions that do not end in these files, by producer."""
    open_since: dict[int, int] = {}
    for _, _, header in _transactional(paths, files):
        if header.is_control:
            open_since.pop(header.producer_id, None)
        else:
            open_since.setdefault(header.producer_id, header.base_offset)
    return open_since


def _is_committed(producer_id: int, paths: Sequence[str], files: Files) -> bool:
    """Whether its next marker says so."""
    for path, position, header in _transactional(paths, files):
        if header.is_control and header.producer_id == producer_id and header.records_count:
            return read_marker(header, path, position, files) is ControlType.COMMIT
    return False


def _transactional(paths: Sequence[str], files: Files) -> Iterator[_TransactionalBatch]:
    for path in paths:
        for position, header in read_batch_headers(path, files=files):
            if header.is_transactional:
                yield _TransactionalBatch(path, position, header)


def _open_in_snapshot(listing: PartitionListing) -> set[tuple[int, int]]:
    if not listing.snapshot_offsets:
        return set()
    newest = _file(listing, listing.snapshot_offsets[-1], SNAPSHOT)
    return {
        (entry.producer_id, entry.current_txn_first_offset)
        for entry in producer_snapshot.read(newest, listing.access)
        if entry.current_txn_first_offset is not None
    }


def _file(listing: PartitionListing, offset: int, suffix: str) -> str:
    return os.path.join(listing.path, file_name(offset, suffix))
