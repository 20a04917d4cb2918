"""Swap segment groups in while others are still being rewritten, so that few are staged at once.

The groups of a log go in in ascending order, as in Kafka: a tombstone must not go before the
records that it hides have gone from an older group. Those that wait side by side go in as one,
which takes fewer syncs. Several logs go at once, since each waits for the disk most of the time.
"""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from cleaner_jobs.messages import LogPlan, Rewritten, Source, TaskProblem
from cleaner_jobs.problems import WorkFileError, problem_of
from cleaner_jobs.signals import deferred_signals
from cleaner_jobs.source_identity import LogChangedError, check_in_place
from compactor.cleaning.planned_files import PlannedFiles
from compactor.cleaning.removals import Removals
from compactor.cleaning.stage_values import FinishedGroup
from compactor.finalizer import (
    StagedGroup,
    StagedSegment,
    merge_groups,
    remove_cleaned,
    swap_group,
)
from compactor.host.progress import ProgressSink
from compactor.log_dirs.kept_files import mark_of
from compactor.planning.layout import sources_of
from storage.errors import CorruptFileError
from storage.file_names import CLEANED, LOG, SWAP, file_name
from storage.files.files import Disk, Files, size_of
from storage.files.local import LOCAL

if TYPE_CHECKING:
    from compactor.cleaning.assembly import EarlyJoin, JoinedSegment
    from compactor.originals.originals_keeper import OriginalsKeeper

SWAP_THREADS = 16
GROUPS_AT_ONCE = 64  # of one log; what they replace is removed once all of them are in


class Swapped(NamedTuple):
    """What has come of the groups of one log; in a dry run, what would."""

    groups: int = 0  # those from the first on that are as they are to be
    sparse_indexes: int = 0  # destinations whose indexes were made to fit when they were joined
    cut_segments: int = 0  # destinations beyond the one that a group has in Kafka
    problem: TaskProblem | None = None
    broke_off: bool = False  # of the group after them: recovery goes on with it

    def with_joined(self, segments: "Sequence[JoinedSegment]") -> "Swapped":
        """Add what a group becomes that this process joins."""
        return self._replace(
            sparse_indexes=self.sparse_indexes + sum(s.indexes.sparse for s in segments),
            cut_segments=self.cut_segments + len(segments) - 1,
        )


@dataclass(slots=True)
class _Queue:
    """The groups of one log that are finished and not yet swapped in.

    The thread that made it busy changes what is swapped; the rest changes under the swapper's lock.
    """

    plan: LogPlan
    sources: list[tuple[Source, ...]]
    files: PlannedFiles | None  # None: the plan does not know them
    removals: Removals
    finished: dict[int, FinishedGroup] = field(default_factory=dict)
    busy: bool = False  # a thread works at it
    stopped: bool = False  # none of its groups begins any more
    swapped: Swapped = field(default_factory=Swapped)


class GroupSwapper:
    """Takes finished groups in any order; its exit waits for the swaps that are begun.

    An error, a Ctrl-C for one, or what `progress` raises, lets these end, and begins no other.
    """

    def __init__(
        self,
        run_id: str,
        progress: ProgressSink,
        originals: "OriginalsKeeper | None" = None,
        disk: Disk = LOCAL,
    ) -> None:
        """originals: keeps what is replaced, before it is."""
        self._run_id, self._progress, self._originals = run_id, progress, originals
        self._disk = disk
        self._lock = threading.Lock()
        self._queues: dict[int, _Queue] = {}
        self._working: list[Future[None]] = []
        self._stop = threading.Event()
        self._broke_off: BaseException | None = None
        self._threads = ThreadPoolExecutor(SWAP_THREADS)
        # a large file takes as long to remove as the rest of its swap
        self._removers = ThreadPoolExecutor(SWAP_THREADS)
        self._swapped_groups = 0  # of all logs
        self._joins: dict[tuple[int, int], EarlyJoin] = {}  # by log id and group
        self._over: set[int] = set()  # logs of which nothing is joined any more

    def __enter__(self) -> "GroupSwapper":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        with deferred_signals():
            self._threads.shutdown()
            self._removers.shutdown()
            for join in self._joins.values():
                join.close()

    def give(self, plan: LogPlan, group: FinishedGroup) -> None:
        """Take a finished group; it is swapped in as soon as those before it are.

        Raise what has ended the swaps meanwhile: LockLostError, or what `progress` has raised.
        """
        if self._broke_off is not None:
            raise self._broke_off
        with self._lock:
            queue = self._queues.get(plan.log_id)
            if queue is None:
                self._progress.swapped(self._swapped_groups)  # from now on something may change
                files = PlannedFiles(plan, self._disk) if plan.files else None
                queue = _Queue(
                    plan=plan,
                    sources=sources_of(plan),
                    files=files,
                    removals=Removals(self._removers, self._disk),
                )
                self._queues[plan.log_id] = queue
            queue.finished[group.group] = group
            if not queue.busy:
                queue.busy = True
                self._working.append(self._threads.submit(self._work, queue))

    def give_piece(self, plan: LogPlan, piece: Rewritten) -> None:
        """Take a piece of a group of which others are missing, to be joined to those before it."""
        if not piece.facts_file:
            return
        from compactor.cleaning.assembly import EarlyJoin

        with self._lock:
            if plan.log_id in self._over:
                return
            join = self._joins.get((plan.log_id, piece.group))
            if join is None and len(self._joins) < SWAP_THREADS:
                join = EarlyJoin(plan, plan.sources_of(piece.group), self._run_id, self._disk)
                self._joins[plan.log_id, piece.group] = join
            if join is not None:
                self._working.append(self._threads.submit(self._join, join, piece))

    def _join(self, join: "EarlyJoin", piece: Rewritten) -> None:
        if not self._stop.is_set():
            join.add(piece)

    def _give_up_joins(self, log_id: int) -> None:
        """Others may need the room of what is joined of a log, and the time."""
        with self._lock:
            self._over.add(log_id)
            joins = {key: join for key, join in self._joins.items() if key[0] == log_id}
        for key, join in joins.items():
            join.close()
            with self._lock:  # only now: until then a swap that is begun waits for it
                self._joins.pop(key, None)

    def stop(self, log_id: int) -> None:
        """Begin no other group of a log: something is wrong with it."""
        with self._lock:
            if log_id in self._queues:
                self._queues[log_id].stopped = True
            self._over.add(log_id)
            if any(of == log_id for of, _ in self._joins):
                self._working.append(self._threads.submit(self._give_up_joins, log_id))

    def finish(self) -> dict[int, Swapped]:
        """Wait for all groups that came, but those after one that failed or is missing.

        By log id; logs of which no group came are not among them.
        """
        self._progress.swapped(self._swapped_groups)
        for future in self._working:
            future.result()
        for queue in self._queues.values():
            try:
                queue.removals.finish()
            except OSError as error:
                _fail(queue, error)
        return {log_id: queue.swapped for log_id, queue in self._queues.items()}

    def _work(self, queue: _Queue) -> None:
        try:
            while run := self._next(queue):
                self._count(self._swap_or_fail(queue, run))
        except BaseException as error:
            self._broke_off = error
            self._stop.set()
            raise

    def _swap_or_fail(self, queue: _Queue, run: Sequence[FinishedGroup]) -> int:
        """How many of them are in; what is wrong with the log or its files concerns no other."""
        before = queue.swapped.groups
        try:
            with self._disk.kept_open(queue.plan.path):
                self._swap(queue, run)
        except (CorruptFileError, LogChangedError, OSError) as error:
            _fail(queue, error)
            broke_off = _is_between_swaps(self._disk, queue.plan.path)
            queue.swapped = queue.swapped._replace(broke_off=broke_off)
            self._give_up_joins(queue.plan.log_id)
        return queue.swapped.groups - before

    def _count(self, groups: int) -> None:
        with self._lock:
            for _ in range(groups):
                self._swapped_groups += 1
                self._progress.swapped(self._swapped_groups)

    def _next(self, queue: _Queue) -> list[FinishedGroup]:
        """The groups that go in next, as one; none where it is over, or another has to come."""
        with self._lock:
            failed = queue.stopped or queue.swapped.problem is not None
            group, run = queue.finished.pop(queue.swapped.groups, None), []
            while group is not None:
                run.append(group)
                following = queue.finished.get(group.group + 1)
                fits = following is not None and all(map(_goes_with_others, (group, following)))
                group = following if fits and len(run) < GROUPS_AT_ONCE else None
                if group is not None:
                    del queue.finished[group.group]
            queue.busy = bool(run) and not failed and not self._stop.is_set()
            return run if queue.busy else []

    def _swap(self, queue: _Queue, run: Sequence[FinishedGroup]) -> None:
        """Those before one with which something is wrong go in before it is raised."""
        ready: list[FinishedGroup] = []
        staged: list[StagedGroup] = []
        problem: Exception | None = None
        for group in run:
            try:
                staged += self._made_ready(queue, group)
            except (CorruptFileError, LogChangedError, OSError) as error:
                problem = error
                break
            ready.append(group)
        if staged:
            names = None if queue.files is None else queue.files.names
            together = merge_groups(staged)
            replaced_bytes = sum(source.log_bytes for source in together.sources)
            remove = partial(queue.removals.remove, replaced_bytes)
            swap_group(self._disk, together, remove, names)
            for piece in chain.from_iterable(group.rewritten for group in ready):
                if piece.facts_file:  # of the work directory: they are joined
                    own = piece.log_file, piece.facts_file
                    left = [path for path in own if self._disk.exists(path)]  # one was taken over
                    queue.removals.begin(piece.log_bytes, left)
        queue.swapped = queue.swapped._replace(groups=queue.swapped.groups + len(ready))
        if problem is not None:
            raise problem

    def _made_ready(self, queue: _Queue, group: FinishedGroup) -> list[StagedGroup]:
        """A group to be swapped in; none where it stays as it is."""
        plan = queue.plan
        self._require_unchanged(queue, group)
        if not group.group:
            remove_cleaned(self._disk, plan.path)
        if group.rewritten[0].left_in_place:
            _require_same(plan, group)
            return []
        staged = self._staged(queue, group)
        return [staged if self._originals is None else self._originals.keep_group(plan, staged)]

    def _require_unchanged(self, queue: _Queue, group: FinishedGroup) -> None:
        """A log in use stays as it is. The first group looks at the files of all."""
        try:
            if queue.files is not None:
                queue.files.check(group.group)
            elif not group.group:
                self._require_in_place(queue.sources)
        except LogChangedError:
            self._require_in_place(queue.sources[group.group :])  # says what has changed in it
            raise

    def _require_in_place(self, sources: Sequence[Sequence[Source]]) -> None:
        for source in chain.from_iterable(sources):
            check_in_place(source, self._disk)

    def _staged(self, queue: _Queue, group: FinishedGroup) -> StagedGroup:
        plan, sources, rewritten = queue.plan, queue.sources[group.group], group.rewritten
        if needs_joining(rewritten):
            segments = joined_segments(plan, sources, rewritten, self._disk)
            queue.swapped = queue.swapped.with_joined(segments)
            return self._joined(plan, sources, group, segments)
        only = rewritten[0]
        _require_whole(only, self._disk)
        staged = only.log_file, only.index_file, only.time_index_file, only.txn_index_file
        segment = StagedSegment(sources[0].base_offset, *staged)
        return StagedGroup(plan.path, sources, (segment,))

    def _joined(
        self,
        plan: LogPlan,
        sources: tuple[Source, ...],
        group: FinishedGroup,
        segments: "Sequence[JoinedSegment]",
    ) -> StagedGroup:
        from compactor.cleaning.assembly import EarlyJoin

        with self._lock:
            join = self._joins.pop((plan.log_id, group.group), None)
        with closing(join or EarlyJoin(plan, sources, self._run_id, self._disk)) as begun:
            return begun.finish(group.rewritten, segments)


def needs_joining(rewritten: Sequence[Rewritten]) -> bool:
    """Whether the tasks left the indexes of a group, and how it is cut, to the driver."""
    return any(piece.facts_file for piece in rewritten)


def joined_segments(
    plan: LogPlan,
    sources: tuple[Source, ...],
    rewritten: Sequence[Rewritten],
    files: Files = LOCAL,
) -> "list[JoinedSegment]":
    """What the pieces of a group become."""
    from compactor.cleaning.assembly import (
        joined_segments,  # with the kernels, which few rounds need here
    )

    return joined_segments(plan, sources, rewritten, files)


def _goes_with_others(group: FinishedGroup) -> bool:
    """Whether a group may be swapped in as one with its neighbours.

    Not what is left in place: it would lie between two that recovery takes for one. Nor what has
    become empty: an empty destination after others would need a rule of its own (C-15.9). Nor what
    this process joins, which takes longer than its syncs.
    """
    only = group.rewritten[0]
    return not (only.left_in_place or needs_joining(group.rewritten)) and only.log_bytes > 0


def _require_same(plan: LogPlan, group: FinishedGroup) -> None:
    """A group stays as it is where it is one segment of which nothing goes; else it is merged."""
    segments = plan.groups[group.group].segments
    (piece,) = group.rewritten
    if len(segments) != 1 or piece.log_bytes != segments[0].log_bytes:
        problem = "reported as left in place, though its group has to be rewritten"
        path = os.path.join(plan.path, file_name(segments[0].base_offset, LOG))
        raise WorkFileError(path, 0, problem)


def _require_whole(piece: Rewritten, files: Files) -> None:
    """Check what this host sees of a piece, which the task has read back on its own host.

    Without its length an empty file looks like a segment of which nothing was left.
    """
    size = size_of(files, piece.log_file)
    if size != piece.log_bytes:
        problem = f"{size} bytes are there, {piece.log_bytes} were written"
        raise WorkFileError(piece.log_file, min(size, piece.log_bytes), problem)
    checksums = piece.log_checksum, *piece.index_checksums
    if len(checksums) != len(piece.staged_files):
        problem = f"files written: {len(checksums)}; named: {len(piece.staged_files)}"
        raise WorkFileError(piece.log_file, 0, problem)
    for path, checksum in zip(piece.staged_files, checksums, strict=True):
        if int(mark_of(files, path).checksum, 16) != checksum:
            raise WorkFileError(path, 0, "not the bytes that were written")


def _is_between_swaps(files: Files, path: str) -> bool:
    """Whether a swap has left names to be settled; not known counts as so."""
    try:
        _, names = files.list_names(path)
    except FileNotFoundError:  # the log is gone, and its swap with it
        return False
    except OSError:
        return True
    return any(name.endswith((CLEANED, SWAP)) for name in names)


def _fail(queue: _Queue, error: Exception) -> None:
    if queue.swapped.problem is None:
        problem = problem_of(queue.plan.log_id, error)
        queue.swapped = queue.swapped._replace(problem=problem)
