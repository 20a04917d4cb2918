"""Swap segment groups in while others are still being rewritten, so that few are staged at once.

The groups of a log go in in ascending order, as in Kafka: a tombstone must not go before the
records that it hides have gone from an older group. Those that wait side by side go in as one,
which takes fewer syncs. Several logs go at once, since each waits for the disk most of the time.

Before each swap `PlannedFiles` checks that the files of a log are those that its round was planned
for, and `Removals` removes what was replaced: the originals of a log, for which its swap waits, and
its pieces.
"""

import os
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from cleaner_jobs.messages import LogPlan, Rewritten, Source, TaskProblem
from cleaner_jobs.problems import WorkFileError, problem_of
from cleaner_jobs.signals import deferred_signals
from cleaner_jobs.source_identity import LogChangedError, check_in_place, check_same
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
from storage.file_names import (
    CLEANED,
    LOG,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    file_name,
    offset_of,
)
from storage.files.disk_hints import Close, can_remove_while_open, close_in_background
from storage.files.files import Disk, Entry, Files, size_of
from storage.files.local import LOCAL
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.partition_metadata import PARTITION_METADATA
from storage.gc_pause import collector_paused
from storage.log.log_dir import list_files

if TYPE_CHECKING:
    from compactor.cleaning.assembly import EarlyJoin, JoinedSegment
    from compactor.originals.originals_keeper import OriginalsKeeper

SWAP_THREADS = 16
GROUPS_AT_ONCE = 64  # of one log; what they replace is removed once all of them are in
LISTED_A_GROUP = 64  # files of the whole directory, on average; a group's own come on top
LISTED_A_LOOK = 3  # files in the time that a look at one by its name takes
LARGE_BYTES = 8 << 20  # of a file, on average: from there on its room takes longer than its name
REMOVED_AT_ONCE_BYTES = 16 << 20  # by one thread, one after the other: a few small files
SMALL_FILES_AT_ONCE = 512  # by one thread, before it takes others
SMALL_FILES_THREADS = 2  # one has the directory, the other prepares its next call
OPEN_AT_ONCE = 16  # of large files, by one thread


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
    files: "PlannedFiles | None"  # None: the plan does not know them
    removals: "Removals"
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


class PlannedFiles:
    """The files of one log, as they were when the round was planned.

    Nobody else should be at work on a log. Another writer changes its end, or what is about to be
    swapped: those files are looked at by name before every group. The whole directory is listed
    before the first group and before the last, so that no checkpoint moves over a change that came
    before it, and in between as often as the looks at names that it saves, and the number of
    groups, pay for. To list it for every group would take the square of the number of segments.
    """

    def __init__(self, plan: LogPlan, access: Files) -> None:
        self._path, self._access, self._plan = plan.path, access, plan
        self._files = {entry.name: entry for entry in plan.files}
        self._first_offsets = [group.base_offset for group in plan.groups]
        self._paid_for = 0  # files of the next listing

    @property
    def names(self) -> Collection[str]:
        """The names of all files; of a group that was checked, exactly those in the directory."""
        return self._files.keys()

    @collector_paused()  # what is listed stays, and has no cycles
    def check(self, group: int) -> None:
        """Raise LogChangedError where a file is another, has gone or has come; OSError.

        To be asked for each group of the round, in their order, before it is swapped in. What
        stands below the group is what the round has made of it, and left out.
        """
        if group in (0, len(self._first_offsets) - 1) or self._pays_for_listing(group):
            self._paid_for = 0
            self._check_all(self._first_offsets[group] if group else 0)
        else:
            self._check_names(self._names_of(group))

    def _pays_for_listing(self, group: int) -> bool:
        self._paid_for += max(LISTED_A_GROUP, LISTED_A_LOOK * len(self._names_of(group)))
        return self._paid_for >= len(self._files)

    def _names_of(self, group: int) -> set[str]:
        return self._of_group[group] | self._of_end

    @cached_property
    def _of_group(self) -> list[set[str]]:
        return _names_of_groups(self._plan)

    @cached_property
    def _of_end(self) -> set[str]:
        return _names_of_end(self._files)

    def _check_all(self, first_offset: int) -> None:
        planned = self._files
        found = {entry.name: entry for entry in list_files(self._path, self._access)}
        others = [name for name, entry in found.items() if planned.get(name) != entry]
        for name in sorted((*others, *(planned.keys() - found.keys()))):
            offset = offset_of(name)
            if offset is None or offset >= first_offset:
                self._compare(name, found.get(name))

    def _check_names(self, names: Iterable[str]) -> None:
        for name in names:
            found = self._access.look_up(os.path.join(self._path, name))
            is_file = found is not None and not found.is_dir and not found.special
            self._compare(name, found if is_file else None)

    def _compare(self, name: str, now: Entry | None) -> None:
        check_same(os.path.join(self._path, name), self._files.get(name), now)


def _names_of_groups(plan: LogPlan) -> list[set[str]]:
    """Return the names to look at for each group.

    These are the files from its base offset to that of the next group, and the names of files that
    its segments do not have.
    """
    names = [
        {name for s in group.segments for name in _names_at(s.base_offset)} for group in plan.groups
    ]
    first_offsets = [group.base_offset for group in plan.groups]
    for entry in plan.files:
        offset = offset_of(entry.name)
        if offset is not None and offset < plan.first_uncleanable_offset:
            names[max(0, bisect_right(first_offsets, offset) - 1)].add(entry.name)
    return names


def _names_of_end(files: Iterable[str]) -> set[str]:
    """Where a broker is at work: from the active segment on, and what has no offset in its name."""
    offsets = {name: offset_of(name) for name in files}
    active = max((offset or 0 for name, offset in offsets.items() if name.endswith(LOG)), default=0)
    names = {name for name, offset in offsets.items() if offset is None or offset >= active}
    return {*names, *_names_at(active), LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA}


def _names_at(base_offset: int) -> list[str]:
    return [file_name(base_offset, kind) for kind in (*SEGMENT_SUFFIXES, SNAPSHOT)]


_Job = Callable[[], None]


class Removals:
    """Files of one log that are being removed. Those that are gone take no memory any more."""

    def __init__(self, threads: ThreadPoolExecutor, disk: Disk) -> None:
        self._threads, self._disk = threads, disk
        self._begun: deque[Future[None]] = deque()
        self._failed: list[Future[None]] = []
        self._frees_later: dict[str, bool] = {}  # by directory

    def remove(self, log_bytes: int, paths: Sequence[str]) -> None:
        """Come back when all their names are gone; the room of large files may come back later.

        paths: in one directory. log_bytes: of all of them, about. Raise, at the end, the OSError of
        the first that could not be removed.
        """
        jobs, threads = self._jobs(log_bytes, paths)
        left = deque(jobs)
        helping = [
            self._threads.submit(_work_through, left) for _ in range(min(len(jobs), threads) - 1)
        ]
        try:
            _work_through(left)
        finally:
            left.clear()  # where this is cut short
            helping = [helper for helper in helping if not helper.cancel()]
            wait(helping)
        for helper in helping:
            helper.result()

    def begin(self, log_bytes: int, paths: Sequence[str]) -> None:
        """Begin to remove files, and return at once. `finish` raises what goes wrong."""
        while self._begun and self._begun[0].done():
            self._take(self._begun.popleft())
        for job in self._jobs(log_bytes, paths)[0]:
            self._begun.append(self._threads.submit(job))

    def finish(self) -> None:
        """Wait for all that was begun. Raise the OSError of the first that could not be removed."""
        while self._begun:
            self._take(self._begun.popleft())
        for removal in self._failed:
            removal.result()

    def _take(self, removal: Future[None]) -> None:
        if removal.exception() is not None:
            self._failed.append(removal)

    def _jobs(self, log_bytes: int, paths: Sequence[str]) -> tuple[list[_Job], int]:
        """What threads do, and how many of them at once."""
        if not paths:
            return [], 0
        are_large = log_bytes >= len(paths) * LARGE_BYTES
        at_once = max(1, len(paths) * REMOVED_AT_ONCE_BYTES // max(1, log_bytes))
        remove, threads = _remove_each, len(paths)
        are_few = not are_large and len(paths) <= at_once  # whatever file system they are on
        if not are_few and self._may_close_in_background(os.path.dirname(paths[0])):
            if are_large:
                remove, at_once = _remove_open, OPEN_AT_ONCE
            else:  # on a disk one thread has the directory: others wait for it, and for Python
                at_once, threads = SMALL_FILES_AT_ONCE, SMALL_FILES_THREADS
        return [partial(remove, self._disk, some) for some in _runs(paths, at_once)], threads

    def _may_close_in_background(self, directory: str) -> bool:
        if directory not in self._frees_later:
            self._frees_later[directory] = can_remove_while_open(self._disk, directory)
        return self._frees_later[directory]


def _work_through(jobs: deque[_Job]) -> None:
    """Do those that nobody else does. Raise, at the end, the OSError of the first that failed."""
    failed: OSError | None = None
    while True:
        try:
            job = jobs.popleft()
        except IndexError:
            break
        try:
            job()
        except OSError as error:
            failed = failed or error
    if failed is not None:
        raise failed


def _runs(paths: Sequence[str], length: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(paths), length):
        yield paths[start : start + length]


def _remove_each(disk: Disk, paths: Sequence[str]) -> None:
    """Raise, at the end, the OSError of the first that could not be removed."""
    failed: OSError | None = None
    with disk.kept_open(os.path.dirname(paths[0])):
        for path in paths:
            try:
                disk.remove(path)
            except OSError as error:
                failed = failed or error
    if failed is not None:
        raise failed


def _remove_open(disk: Disk, paths: Sequence[str]) -> None:
    """Remove open files, and let their room come back later."""
    held: list[Close] = []
    try:
        for path in paths:
            # what cannot be opened, or is no file, is removed all the same
            with suppress(OSError, CorruptFileError):
                held.append(disk.open(path).__exit__)
        _remove_each(disk, paths)
    finally:
        close_in_background(held)
