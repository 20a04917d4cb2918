"""Swaps segment groups in while others are still being rewritten, so that few are staged at once.

The groups of a log go in one at a time and in ascending order, as in Kafka: a tombstone must not
go before the records that it hides have gone from an older group. Several logs go at once, since
each waits for the disk most of the time.
"""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from cleaner_jobs.problems import WorkFileError, problem_of
from cleaner_jobs.task_values import Rewritten, Source
from cleaner_jobs.unchanged import LogChangedError, check_in_place
from cleaner_jobs.undisturbed import undisturbed
from compactor.cleaning.planned_files import PlannedFiles
from compactor.cleaning.stages import FinishedGroup, LogOutcome
from compactor.errors import LockLostError
from compactor.finalizer import StagedGroup, StagedSegment, remove_cleaned, swap_group
from compactor.host.progress import ProgressSink
from compactor.originals.kept_files import mark_of
from compactor.planning.layout import sources_of
from storage.errors import CorruptFileError
from storage.file_names import CLEANED, SWAP
from storage.files import filesystem

if TYPE_CHECKING:
    from compactor.cleaning.assembly import JoinedSegment
    from compactor.originals.originals_keeper import OriginalsKeeper

SWAP_THREADS = 8


@dataclass(slots=True)
class _Queue:
    """The groups of one log that are finished and not yet swapped in."""

    outcome: LogOutcome
    sources: list[tuple[Source, ...]]
    files: PlannedFiles | None  # None: the plan does not know them
    finished: dict[int, FinishedGroup] = field(default_factory=dict)
    busy: bool = False  # a thread works at it
    removals: list[Future[None]] = field(default_factory=list)


class GroupSwapper:
    """Takes finished groups in any order; whoever leaves it waits for the swaps that are begun.

    An error, a Ctrl-C for one, lets these end, and begins no other.
    """

    def __init__(
        self, run_id: str, progress: ProgressSink, originals: "OriginalsKeeper | None" = None
    ) -> None:
        """originals: keeps what is replaced, before it is."""
        self._run_id, self._progress, self._originals = run_id, progress, originals
        self._lock = threading.Lock()
        self._queues: dict[int, _Queue] = {}
        self._working: list[Future[None]] = []
        self._stop = threading.Event()
        self._lock_lost: LockLostError | None = None
        self._threads = ThreadPoolExecutor(SWAP_THREADS)
        # a large file takes as long to remove as the rest of its swap
        self._removers = ThreadPoolExecutor(SWAP_THREADS)
        self._swapped = 0

    def __enter__(self) -> "GroupSwapper":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        with undisturbed():
            self._threads.shutdown()
            self._removers.shutdown()

    def give(self, outcome: LogOutcome, group: FinishedGroup) -> None:
        """Take a finished group; it is swapped in as soon as those before it are.

        Raise LockLostError if one of those that are being swapped in has met it.
        """
        if self._lock_lost is not None:
            raise self._lock_lost
        log_id = outcome.plan.log_id
        with self._lock:
            queue = self._queues.get(log_id)
            if queue is None:
                self._progress.swapped(self._swapped)  # from now on something may change
                files = PlannedFiles(outcome.plan) if outcome.plan.files else None
                queue = _Queue(outcome, sources_of(outcome.plan), files)
                self._queues[log_id] = queue
            queue.finished[group.group] = group
            if not queue.busy:
                queue.busy = True
                self._working.append(self._threads.submit(self._work, queue))

    def finish(self) -> None:
        """Wait for all groups that were given, but those behind one that failed or is missing."""
        self._progress.swapped(self._swapped)
        for future in self._working:
            future.result()
        for queue in self._queues.values():
            try:
                for removal in queue.removals:
                    removal.result()
            except OSError as error:
                _fail(queue.outcome, error)

    def _work(self, queue: _Queue) -> None:
        while (group := self._next(queue)) is not None:
            try:
                self._swap(queue, group)
            except (CorruptFileError, LogChangedError, OSError) as error:
                _fail(queue.outcome, error)
                queue.outcome.swap_broke_off = _is_between_swaps(queue.outcome.plan.path)
            except LockLostError as error:
                self._lock_lost = error
                self._stop.set()
                raise

    def _next(self, queue: _Queue) -> FinishedGroup | None:
        with self._lock:
            stopped = self._stop.is_set() or queue.outcome.problem is not None
            group = queue.finished.pop(queue.outcome.swapped_groups, None)
            queue.busy = group is not None and not stopped
            return group if queue.busy else None

    def _swap(self, queue: _Queue, group: FinishedGroup) -> None:
        outcome, pieces = queue.outcome, group.pieces
        if not outcome.swapped_groups:
            for source in chain.from_iterable(queue.sources):  # a log in use stays as it is
                check_in_place(source)
            remove_cleaned(outcome.plan.path)
        if queue.files is not None:
            queue.files.check(group.group)
        if not pieces[0].left_in_place:
            staged = self._staged(outcome, queue.sources[group.group], pieces)
            if self._originals is not None:
                staged = self._originals.keep_group(outcome.plan, staged)
            swap_group(
                staged,
                lambda path: queue.removals.append(self._removers.submit(filesystem.remove, path)),
            )
            queue.removals += [
                self._removers.submit(filesystem.remove, path)
                for piece in pieces
                if piece.facts_file
                for path in (piece.log_file, piece.facts_file)
            ]  # of the work directory: they are joined
        outcome.swapped_groups += 1
        with self._lock:
            self._swapped += 1
            self._progress.swapped(self._swapped)

    def _staged(
        self, outcome: LogOutcome, sources: tuple[Source, ...], pieces: Sequence[Rewritten]
    ) -> StagedGroup:
        if needs_joining(pieces):
            segments = joined_segments(outcome, sources, pieces)
            from compactor.cleaning.assembly import join_pieces

            return join_pieces(outcome.plan, sources, pieces, segments, self._run_id)
        only = pieces[0]
        _require_whole(only)
        staged = only.log_file, only.index_file, only.time_index_file, only.txn_index_file
        segment = StagedSegment(sources[0].base_offset, *staged)
        return StagedGroup(outcome.plan.path, sources, (segment,))


def _require_whole(piece: Rewritten) -> None:
    """A task reads back what it has written, on its own host; here is what this one finds of it.

    An empty file is a segment of which nothing was left, to whoever does not know how long it was.
    """
    size = os.path.getsize(piece.log_file)
    if size != piece.log_bytes:
        problem = f"{size} bytes are there, {piece.log_bytes} were written"
        raise WorkFileError(piece.log_file, min(size, piece.log_bytes), problem)
    checksums = piece.log_checksum, *piece.index_checksums
    for path, checksum in zip(piece.staged_files, checksums, strict=True):
        if int(mark_of(path).checksum, 16) != checksum:
            raise WorkFileError(path, 0, "not the bytes that were written")


def _is_between_swaps(path: str) -> bool:
    """Whether a swap has left names to be settled; not known counts as so.

    What is `.deleted` may be of the group before, and about to go.
    """
    try:
        _, names = filesystem.list_names(path)
    except FileNotFoundError:  # the log is gone, and its swap with it
        return False
    except OSError:
        return True
    return any(name.endswith((CLEANED, SWAP)) for name in names)


def _fail(outcome: LogOutcome, error: Exception) -> None:
    if outcome.problem is None:
        outcome.problem = problem_of(outcome.plan.log_id, error)


def needs_joining(pieces: Sequence[Rewritten]) -> bool:
    """Whether the tasks left the indexes of a group, and how it is cut, to the driver."""
    return any(piece.facts_file for piece in pieces)


def joined_segments(
    outcome: LogOutcome, sources: tuple[Source, ...], pieces: Sequence[Rewritten]
) -> "list[JoinedSegment]":
    """What the pieces of a group become, noted in outcome where Kafka's cleaner would stop."""
    from compactor.cleaning.assembly import (
        joined_segments,  # with the kernels, which few rounds need here
    )

    segments = joined_segments(outcome.plan, sources, pieces)
    outcome.sparse_indexes += sum(segment.indexes.sparse for segment in segments)
    outcome.cut_segments += len(segments) - 1
    return segments
