"""Join the pieces of a segment group that several tasks rewrote into staged segments.

The pieces were checked when they were written. What is joined is checked against their checksums,
and the indexes are made of the facts of all their batches (compaction C-13.3). The group becomes
one segment, as in Kafka; where it is too long for one, at which Kafka's cleaner stops (C-13.7), a
new one is begun at a batch and named after that batch's base offset.

`EarlyJoin` joins the first pieces of a group while others are still being written: it appends them
in their order to a staged file that no broker knows. That decides nothing: the group is proven when
all of its pieces have come, and a file that is not finished by then is swept with every other
staged file.
"""

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from io import FileIO
from itertools import chain
from typing import NamedTuple

import numpy as np
import xxhash

from cleaner_jobs.messages import LogPlan, Rewritten, Source
from cleaner_jobs.problems import WorkFileError
from cleaner_jobs.staging import staged_suffix
from cleaner_jobs.tasks.segment_facts import (
    BatchFacts,
    FinishedIndexes,
    IndexesInMaking,
    facts_in,
    finish_like,
    write_like,
)
from cleaner_jobs.work_file import read_checked
from compactor.finalizer import StagedGroup, StagedSegment
from storage.errors import CorruptFileError
from storage.file_names import INDEX_SUFFIXES, LOG, file_name
from storage.files import io_limit
from storage.files.descriptors import naming
from storage.files.disk_hints import punch_hole, retry_with_freed_space, start_writeback
from storage.files.files import Disk, FileAttributes, Files, size_of
from storage.files.local import LOCAL
from storage.formats import segment_indexes, txn_index_columns
from storage.formats.txn_index_columns import Entries

COPY_BYTES = 8 << 20  # at once
HASHED_BYTES = 256 << 10  # at once: they stay in the cache of one core
CANNOT_SHARE = (errno.EXDEV, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class JoinedSegment(NamedTuple):
    """A range of bytes of the pieces, one after the other, that becomes a segment."""

    base_offset: int
    start: int  # in the bytes of all pieces
    end: int
    indexes: FinishedIndexes


class Span(NamedTuple):
    """Bytes of a piece that go to one segment."""

    piece: Rewritten
    start: int
    log_bytes: int


def joined_segments(
    plan: LogPlan,
    sources: tuple[Source, ...],
    rewritten: Sequence[Rewritten],
    files: Files = LOCAL,
) -> list[JoinedSegment]:
    """What the pieces of a group become. Raise what joining would raise of the indexes."""
    path = sources[0].path
    limits = plan.index_interval_bytes, plan.segment_index_bytes
    base_offset, start, end, previous_offset = sources[0].base_offset, 0, 0, -1
    making, segments = IndexesInMaking(path, base_offset, limits), list[JoinedSegment]()
    of_pieces = (facts_in(piece.facts_file, piece.facts_checksum, files) for piece in rewritten)
    for facts in chain.from_iterable(of_pieces):
        if np.any(np.diff(facts["last_offset"], prepend=previous_offset) <= 0):
            raise CorruptFileError(path, 0, "the pieces of the cleaned segment are out of order")
        previous_offset = int(facts["last_offset"][-1])
        while len(facts):
            fitting = _fitting(facts, end - start)
            if not fitting:
                segments.append(JoinedSegment(base_offset, start, end, making.finish()))
                base_offset, start = int(facts["base_offset"][0]), end
                making = IndexesInMaking(path, base_offset, limits)
                continue
            making.add(facts[:fitting])
            end += int(facts["size"][:fitting].sum())
            facts = facts[fitting:]
    return [*segments, JoinedSegment(base_offset, start, end, making.finish())]


def join_pieces(
    plan: LogPlan,
    sources: tuple[Source, ...],
    rewritten: Sequence[Rewritten],
    segments: Sequence[JoinedSegment],
    begun: "LogInJoining",
) -> StagedGroup:
    """Join the pieces of a group into the segments of joined_segments; what is to be swapped in.

    begun: holds the first of them, or none.
    """
    disk = begun.disk
    model = disk.attributes_of(sources[-1].path)
    aborted = _aborted_txns(rewritten[0].txn_index_file, segments, disk)
    suffix = begun.path.removeprefix(os.path.join(plan.path, file_name(begun.base_offset, LOG)))
    names = [
        StagedSegment.beside(plan.path, segment.base_offset, suffix, len(own) > 0)
        for segment, own in zip(segments, aborted, strict=True)
    ]
    log = begun
    try:
        # by threads: a sync waits for the disk, and the log is longer than all of these
        with ThreadPoolExecutor(len(INDEX_SUFFIXES)) as syncs:
            for segment, staged, own in zip(segments, names, aborted, strict=True):
                if log.path != staged.log_file:
                    log = LogInJoining(
                        staged.log_file, segment.base_offset, model, disk, log.digest
                    )
                begun_syncs = [
                    syncs.submit(disk.sync_file, name)
                    for name in _written_indexes(segment, staged, own, model, disk)
                ]
                with log:
                    log.finish(list(_spans(rewritten, segment)))
                for sync in begun_syncs:
                    sync.result()
    except BaseException:
        for name in (name for staged in names for name in staged.files.values()):
            with suppress(OSError):  # the first error counts; the round sweeps it
                disk.remove(name)
        raise
    return StagedGroup(plan.path, sources, tuple(names))


class LogInJoining:
    """A `.log` in the making, as far as its pieces have come.

    The file of the first piece becomes that of the segment, where it can. Bytes of the file are on
    their way to the disk while the next ones are copied, and all of them are hashed at the end:
    that shows what somebody else did to the file between two pieces. Leave it as a context after
    adding to it.
    """

    def __init__(
        self,
        path: str,
        base_offset: int,
        model: FileAttributes,
        disk: Disk,
        digest: xxhash.xxh3_64 | None = None,
    ) -> None:
        """digest: of the piece that goes on from the segment before."""
        self.path, self.base_offset, self._model = path, base_offset, model
        self.disk = disk
        self.digest = digest or xxhash.xxh3_64()
        self.log_bytes = 0
        self._spans: list[Span] = []
        self._begun: list[Future[None]] = []
        self._out: FileIO | None = None

    def __enter__(self) -> "LogInJoining":
        return self

    def __exit__(self, *_: object) -> None:
        if self._out is not None:
            self._writeback.shutdown()
            self._out.close()

    def add(self, span: Span) -> None:
        """Append a span to the others."""
        stands = self._out is None and _take_over(span, self.path, self._model, self.disk)
        out = self._opened(stands)
        with naming(self.path):
            for count in _copied(span, None if stands else out, self.disk):
                write = self._writeback.submit(start_writeback, out.fileno(), self.log_bytes, count)
                self._begun.append(write)
                self.log_bytes += count
        self._spans.append(span)

    def finish(self, spans: Sequence[Span]) -> None:
        """Add what is missing of these, and bring them to the disk.

        Raise WorkFileError where a piece is not what was written, or OSError.
        """
        there = self._spans.copy()
        assert there == spans[: len(there)], "pieces were joined that another segment takes"
        for span in spans[len(there) :]:
            self.add(span)
        out = self._opened()
        for write in self._begun:
            write.result()
        with naming(self.path):
            self._check_size(out.fileno())
            self._check_bytes(out.fileno())
            finish_like(out.fileno(), self._model, self.disk)
            # by this descriptor: another one may not see an error from before it was opened
            self.disk.sync_descriptor(out.fileno())

    def _check_size(self, descriptor: int) -> None:
        """Each piece is hashed in its place, and the file may have nothing else."""
        spans_bytes = sum(span.log_bytes for span in self._spans)
        size = os.fstat(descriptor).st_size
        if not size == self.log_bytes == spans_bytes:
            problem = f"{size} bytes are there, {self.log_bytes} were joined of {spans_bytes}"
            raise WorkFileError(self.path, min(size, spans_bytes), problem)

    def _check_bytes(self, descriptor: int) -> None:
        """Where a piece ends, the digest must be its own."""
        position = 0
        for span in self._spans:
            if not span.start:
                self.digest.reset()
            _add_to(self.digest, descriptor, position, span.log_bytes)
            is_whole = span.start + span.log_bytes == span.piece.log_bytes
            if is_whole and self.digest.intdigest() != span.piece.log_checksum:
                problem = "a joined piece is not what was written"
                raise WorkFileError(self.path, position, problem)
            position += span.log_bytes

    def _opened(self, stands: bool = False) -> FileIO:
        """stands: whether the file exists already."""
        if self._out is None:
            with naming(self.path):
                self._out = self.disk.open_raw(self.path, "r+b" if stands else "x+b")
            self._writeback = ThreadPoolExecutor(1)
        return self._out


class EarlyJoin:
    """The pieces of one group. Several threads may add some, and one finishes."""

    def __init__(
        self, plan: LogPlan, sources: tuple[Source, ...], run_id: str, disk: Disk = LOCAL
    ) -> None:
        self._disk = disk
        self._plan, self._sources, self._run_id = plan, sources, run_id
        self._lock = threading.Lock()
        self._waiting: dict[int, Rewritten] = {}  # by number: pieces before them are missing
        self._next = 0
        self._log: LogInJoining | None = None
        self._problem: BaseException | None = None
        self._is_over = False

    def add(self, piece: Rewritten) -> None:
        """Join a piece, and those that waited for it, if it is their turn.

        `finish` raises what goes wrong; what is no fault of a file this raises, too.
        """
        with self._lock:
            self._waiting[piece.number] = piece
            try:
                while not self._is_over and self._next in self._waiting:
                    self._add(self._waiting.pop(self._next))
            except BaseException as error:  # whatever it is, bytes may stand there that none counts
                self._problem, self._is_over = error, True
                self._discard()  # others may need the room
                if not isinstance(error, (CorruptFileError, OSError)):
                    raise

    def _add(self, piece: Rewritten) -> None:
        log = self._opened()
        if log.log_bytes + piece.log_bytes > segment_indexes.MAX_LOG_BYTES:
            self._is_over = True  # where to cut it is known when all pieces are there
            return
        if piece.log_bytes:
            log.add(Span(piece, 0, piece.log_bytes))
        self._next += 1

    def _opened(self) -> LogInJoining:
        if self._log is None:
            first, last = self._sources[0], self._sources[-1]
            path = os.path.join(self._plan.path, file_name(first.base_offset, LOG))
            path += staged_suffix(self._run_id, "joined")
            model = self._disk.attributes_of(last.path)
            self._log = LogInJoining(path, first.base_offset, model, self._disk)
        return self._log

    def finish(
        self, rewritten: Sequence[Rewritten], segments: Sequence[JoinedSegment]
    ) -> StagedGroup:
        """Join what is left, into the segments of joined_segments.

        Raise CorruptFileError or OSError, and leave nothing.
        """
        with self._lock:
            self._is_over = True
            if self._problem is not None:
                raise self._problem
            begun = self._opened()
            staged = join_pieces(self._plan, self._sources, rewritten, segments, begun)
            self._log = None
            return staged

    def close(self) -> None:
        """Add nothing more, and leave nothing of what was not finished."""
        self._is_over = True  # for who adds at this moment, too: the piece at hand is the last
        with self._lock:
            self._discard()

    def _discard(self) -> None:
        log, self._log = self._log, None
        if log is not None:
            with suppress(OSError):  # nobody reads it any more
                log.__exit__()
            with suppress(OSError):  # the round sweeps it
                self._disk.remove(log.path)


def _fitting(facts: BatchFacts, log_bytes: int) -> int:
    """How many more batches a segment of that size takes; an empty one takes any."""
    ends = log_bytes + np.cumsum(facts["size"])
    fitting = int(np.searchsorted(ends, segment_indexes.MAX_LOG_BYTES, side="right"))
    return fitting if log_bytes else max(fitting, 1)


def _written_indexes(
    segment: JoinedSegment,
    staged: StagedSegment,
    aborted: Entries,
    model: FileAttributes,
    disk: Disk,
) -> list[str]:
    """Write the index files of a segment; their names."""
    write_like(staged.index_file, segment.indexes.offset_index, model, disk)
    write_like(staged.time_index_file, segment.indexes.time_index, model, disk)
    if len(aborted):
        data = txn_index_columns.encode_columns(aborted)
        write_like(staged.txn_index_file, data, model, disk)
    return [name for kind, name in staged.files.items() if kind != LOG]


def _aborted_txns(path: str, segments: Sequence[JoinedSegment], files: Files) -> list[Entries]:
    """The `.txnindex` entries of a group, each with the segment that holds its marker (F-11.2)."""
    data = read_checked(path, files) if path else b""
    entries = txn_index_columns.decode_columns(data, path)
    edges = [segment.base_offset for segment in segments[1:]]
    return np.split(entries, np.searchsorted(entries[:, 2], edges))


def _spans(rewritten: Sequence[Rewritten], segment: JoinedSegment) -> Iterator[Span]:
    piece_start = 0
    for piece in rewritten:
        start = max(segment.start - piece_start, 0)
        end = min(segment.end - piece_start, piece.log_bytes)
        if start < end:
            yield Span(piece, start, end - start)
        piece_start += piece.log_bytes


def _take_over(span: Span, path: str, model: FileAttributes, disk: Disk) -> bool:
    """Rename the file of a piece to that of a segment that begins with the whole of it.

    Where nothing of another directory would stay with it: attributes that a file is born with.
    """
    piece = span.piece
    if span.log_bytes != piece.log_bytes or size_of(disk, piece.log_file) != piece.log_bytes:
        return False
    if disk.attributes_of(piece.log_file).extended != model.extended or disk.exists(path):
        return False
    try:
        disk.rename(piece.log_file, path)
    except OSError as error:  # for one, the work directory is on another file system
        if error.errno not in (*CANNOT_SHARE, errno.EPERM, errno.EACCES):
            raise
        return False
    return True


def _copied(span: Span, out: FileIO | None, disk: Disk) -> Iterator[int]:
    """Append the bytes of a span; yield how many more it has. None: it has all already.

    The piece gives its own up as it goes: they make room for those that follow.
    """
    done = 0
    with disk.open_raw(span.piece.log_file, "r+b") if out else nullcontext() as source:
        if source and out:
            source.seek(span.start)
            out.seek(0, os.SEEK_END)
        while done < span.log_bytes:
            count = min(COPY_BYTES, span.log_bytes - done)
            if source and out:
                io_limit.take(2 * count)
                if not _append(source.fileno(), out.fileno(), count):
                    raise WorkFileError(span.piece.log_file, span.piece.log_bytes, "cut short")
                punch_hole(source.fileno(), span.start + done, count)
            yield count
            done += count


def _append(source: int, target: int, log_bytes: int) -> bool:
    """Copy inside the kernel; where the file system can, without copying a byte.

    Whether source has so many bytes.
    """
    left = log_bytes
    while left:
        copied = retry_with_freed_space(partial(_append_some, source, target, left))
        if not copied:
            return False
        left -= copied
    os.lseek(target, 0, os.SEEK_END)
    return True


def _append_some(source: int, target: int, log_bytes: int) -> int:
    try:
        return os.copy_file_range(source, target, log_bytes)
    except OSError as error:  # for one, the work directory is on another file system
        if error.errno not in CANNOT_SHARE:
            raise
        return os.sendfile(target, source, None, log_bytes)


def _add_to(digest: xxhash.xxh3_64, descriptor: int, position: int, count: int) -> None:
    buffer = memoryview(bytearray(min(HASHED_BYTES, count)))
    end = position + count
    io_limit.take(count)
    while position < end and (got := os.preadv(descriptor, [buffer[: end - position]], position)):
        digest.update(buffer[:got])  # cut short: the digest is another
        position += got
