"""Producer snapshots through the recovery of a log: which a broker leaves, drops and writes anew.

For each segment that is recovered, the state at its base offset is built from the newest sound
snapshot and the batches behind it; then the segment's own are added, and the transactions that they
abort are those of its `.txnindex`. Snapshots past a segment are dropped when it is recovered, and
one is written at its end. When all is recovered, the state at the log end offset is built likewise.

No file is changed here: a SnapshotBook knows which snapshots there are to be. Source: Kafka,
LogLoader.recoverSegment, LogSegment.updateProducerState, UnifiedLog.rebuildProducerState,
ProducerStateManager; spec C-23.4, F-14.3, F-14.4.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from storage.errors import CorruptFileError
from storage.file_names import LOG, SNAPSHOT, file_name
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import producer_snapshot
from storage.formats.producer_snapshot import ProducerEntry, kept_on_loading
from storage.formats.record_batch import BatchHeader
from storage.formats.txn_index import AbortedTxn
from storage.log import segment_reader
from storage.log.producer_state import ExpiryClock, Replay


@dataclass(slots=True)
class SnapshotBook:
    """The snapshots of a log by offset: those in files, and those that are to be written."""

    path: str  # the partition directory
    in_files: set[int]
    made: dict[int, tuple[ProducerEntry, ...]] = field(default_factory=dict)
    access: Files = LOCAL  # by which the log is read

    @property
    def offsets(self) -> list[int]:
        return sorted(self.in_files | self.made.keys())

    def drop(self, offsets: Iterable[int]) -> None:
        for offset in list(offsets):
            self.in_files.discard(offset)
            self.made.pop(offset, None)

    def make(self, offset: int, replay: Replay) -> None:
        self.made[offset] = tuple(replay.entries.values())


@dataclass(frozen=True, slots=True)
class LogToRead:
    """What the state is built from: logs by rising base offset, each up to its last sound batch."""

    path: str
    bases: tuple[int, ...]
    log_bytes: tuple[int, ...]


class ProducerRecovery:
    """The producers of a log while its segments are recovered, one after the other."""

    def __init__(self, book: SnapshotBook, clock: ExpiryClock) -> None:
        self._book, self._clock = book, clock

    def begin(self, log: LogToRead, base_offset: int, log_start_offset: int) -> "SegmentProducers":
        """Build the state below a segment. log: the segments that are loaded by then."""
        state = self._rebuild(log, log_start_offset, base_offset)
        return SegmentProducers(os.path.join(log.path, file_name(base_offset, LOG)), state)

    def end(self, log: LogToRead, log_start_offset: int, end_offset: int) -> None:
        """All is recovered: drop stray snapshots, and write one at the log end offset."""
        kept = kept_on_loading(self._book.offsets, log.bases)
        self._book.drop({*self._book.offsets} - {*kept})
        self._rebuild(log, log_start_offset, end_offset)

    def _rebuild(self, log: LogToRead, log_start_offset: int, end_offset: int) -> "_State":
        state = _State(self._book)
        state.reload(log_start_offset, end_offset, self._clock)
        if end_offset > state.end_offset:
            snapshots_at = {*log.bases[-2:], end_offset}
            start = state.end_offset
            for base, log_bytes in _from(log, start, end_offset):
                state.end_offset = max(base, state.end_offset, log_start_offset)
                if base in snapshots_at:
                    state.take_snapshot()
                state.replay_segment(log.path, base, log_bytes)
        state.end_offset = end_offset
        state.take_snapshot()
        return state


class _State:
    """Kafka's ProducerStateManager, as far as a recovery needs one."""

    def __init__(self, book: SnapshotBook) -> None:
        self.book, self.replay = book, Replay(book.access)
        self.end_offset = self._snapshot_end = 0

    def reload(self, log_start_offset: int, end_offset: int, clock: ExpiryClock) -> None:
        """Drop snapshots out of range, and load the newest that is left, if one is needed."""
        book = self.book
        book.drop(o for o in book.offsets if o > end_offset or o <= log_start_offset)
        if end_offset == 0:
            self.end_offset = log_start_offset
            self._snapshot_end = max(book.offsets, default=log_start_offset)
            return
        self.end_offset = self._snapshot_end = self._load_newest(clock, log_start_offset)

    def _load_newest(self, clock: ExpiryClock, otherwise: int) -> int:
        for offset in reversed(self.book.offsets):
            try:
                entries = self.book.made.get(offset)
                if entries is None:
                    path = os.path.join(self.book.path, file_name(offset, SNAPSHOT))
                    entries = tuple(producer_snapshot.read(path, self.book.access))
            except CorruptFileError:  # as Kafka: it goes, and the next older one is taken
                self.book.drop([offset])
                continue
            self.replay.entries = {e.producer_id: e for e in entries if not clock.is_expired(e)}
            return offset
        return otherwise

    def replay_segment(self, path: str, base_offset: int, log_bytes: int) -> None:
        log_path = os.path.join(path, file_name(base_offset, LOG))
        access = self.book.access
        headers = segment_reader.read_batch_headers(log_path, end=log_bytes, files=access)
        for position, header in headers:
            if header.last_offset >= self.end_offset and header.producer_id >= 0:
                self.replay.apply(header, log_path, position)

    def take_snapshot(self) -> None:
        if self.end_offset > self._snapshot_end:
            self.book.make(self.end_offset, self.replay)
            self._snapshot_end = self.end_offset


class SegmentProducers:
    """The producers of a segment that is being recovered, batch by batch."""

    def __init__(self, log_path: str, state: _State) -> None:
        self._log_path, self._state = log_path, state
        self.aborted: list[AbortedTxn] = []  # the entries of its .txnindex

    def add(self, header: BatchHeader, position: int) -> None:
        """Take in the next batch of format v2."""
        if header.producer_id >= 0:
            completed = self._state.replay.apply(header, self._log_path, position)
            if completed is not None and completed.is_aborted:
                self.aborted.append(self._state.replay.aborted(completed))
        self._state.end_offset = header.next_offset

    def finish(self) -> None:
        self._state.take_snapshot()


def _from(log: LogToRead, start: int, end: int) -> Sequence[tuple[int, int]]:
    """Base offset and size of each segment from the one that holds start on, below end."""
    first = max((base for base in log.bases if base <= start), default=-1)
    return [
        (base, log_bytes)
        for base, log_bytes in zip(log.bases, log.log_bytes, strict=True)
        if first <= base < end
    ]
