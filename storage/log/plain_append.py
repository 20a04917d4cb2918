"""Fast path of appends: one batch or many, of which a kernel finds that they are plain.

Such batches (`append_kernel`) get their offsets and go to the end of the log; they are without a
producer, or the next ones of a producer that has nothing else to be looked at. The kernel writes
them, and indexes them, where nothing else is to be done; else the rest is done here. All other
appends, and all where the kernels are not loaded, are left to `appending`, which does the same step
by step. Of the producers that a kernel is given, nothing but their sequences is looked at (L-14.2
to L-14.4).

Of many batches at once each is checked, gets its offsets, and is indexed as if it were appended by
itself, with one write for as many as are plain; what there is then in memory is the same, and so is
what a flush leaves in the files. Source: as there; spec L-13, L-14, L-18.
"""

from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from types import ModuleType
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from storage.codecs.compression import Codec
from storage.files.files import NOT_HELD, HeldFile
from storage.formats.batch_header import (
    BATCH_HEADER_BYTES,
    MAGIC,
    MAX_LAST_OFFSET,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    PRODUCER_ID_AT,
)
from storage.log.appending import AppendRequest, LogAppendInfo
from storage.log.batches import Bytes, in_memory
from storage.log.errors import LogError
from storage.log.lazy_kernels import COMPILED, Scratch, scratch
from storage.log.log_config import LogConfig
from storage.log.log_state import LogState, flush, roll
from storage.log.offsets import LargestTimestamp
from storage.log.producer_append_info import AppendOrigin
from storage.log.producer_state_entry import BatchMetadata, ProducerStateEntry
from storage.log.producer_state_manager import ProducerStateManager
from storage.log.segment import IncomingBytes, LogSegment

_PLAIN_APPEND = Struct("=28q")  # append_kernel.PlainAppend
_LOG_END = Struct("=7q")  # the last fields of it, which are as after the append
_LOG_END_AT = _PLAIN_APPEND.size - _LOG_END.size
_PRODUCER = Struct("=4q")  # append_kernel.PlainProducer
_ID = Struct(">q")
_TAKEN = Struct("=8q")  # append_kernel.TakenBatch
_TAKEN_BYTES = _TAKEN.size


def row_of(room: Scratch, number: int) -> tuple[int, ...]:
    """A batch that was taken, by its number: the fields of append_kernel.TakenBatch."""
    return _TAKEN.unpack_from(room.batches_view, number * _TAKEN_BYTES)


_MAX_INT = 2**31 - 1
_MAX_LONG = 2**63 - 1
_AGES = 2**62  # added to any time of today, a kernel's number can still hold it
_NO_TIME = LargestTimestamp(NO_TIMESTAMP, 0)
_LAST_OFFSET = 2  # in a row of append_kernel.TakenBatch
_CODECS = tuple(Codec(number) for number in range(max(Codec) + 1))


class Run(NamedTuple):
    """Batches in the room of a thread, and how they are appended."""

    room: Scratch
    start: int
    end: int
    is_alone: bool  # there has to be one batch, and nothing behind it
    how: AppendRequest


class PlainAppends:
    """Of one log. Whoever calls holds the log's lock."""

    def __init__(self, state: LogState) -> None:
        self._state, self._local, self._epochs = state, state.local, state.epochs
        self.producers = PlainProducers(state.producers)
        self._take(state.config)

    def _take(self, config: LogConfig) -> None:
        """Reckon out of the settings what each append asks for."""
        self._config = config
        self._keeps_times = config.message_timestamp_type == "CreateTime"
        self._keeps_codec = config.compression_type in ("producer", "uncompressed")
        self._most_bytes = min(config.max_message_bytes, config.segment_bytes)
        self._most_in_segment, self._most_waited_ms = config.segment_bytes, config.max_segment_ms
        self._needs_keys = config.is_compacted
        self._before_ms = config.message_timestamp_before_max_ms
        self._after_ms = min(config.message_timestamp_after_max_ms, _AGES)
        self._most_unflushed = config.flush_messages

    @property
    def log_start(self) -> int:
        return self._state.watermarks.log_start

    def kernels_for(self, size_bytes: int, how: AppendRequest) -> ModuleType | None:
        """The kernels, where an append of so many bytes may be plain."""
        local = self._state.local
        kernels = COMPILED.kernels or COMPILED.kernels_for(size_bytes)
        if kernels is None or local.is_closed or local.directory.is_offline:
            return None
        if local.config is not self._config:
            self._take(local.config)
        if (
            not self._keeps_times
            or not (self._keeps_codec or how.is_made_for_log)
            or how.origin is not AppendOrigin.CLIENT
            or how.target_magic != MAGIC
            or not 0 <= how.leader_epoch <= _MAX_INT
            or local.end.offset > MAX_LAST_OFFSET
        ):
            return None
        return kernels

    def append(self, data: bytes, how: AppendRequest) -> LogAppendInfo | None:
        """Append a batch; None, and nothing is done, if it is not plain."""
        size = len(data)
        kernels = self.kernels_for(size, how)
        if kernels is None or not BATCH_HEADER_BYTES <= size <= self._most_bytes:
            return None
        room = scratch()
        room.put(data)
        if not self.producers.put_all(room):
            return None
        reached, count = self.run(
            kernels, Run(room=room, start=0, end=size, is_alone=True, how=how)
        )
        if not count:
            return None
        if reached == kernels.DONE:
            self.follow(room, 1)
        else:
            self.go_on(room, 0, how.leader_epoch)
        return info_of(row_of(room, 0), self.log_start)

    def run(self, kernels: ModuleType, run: Run) -> tuple[int, int]:
        """Let a kernel append batches, as far as they are plain. Returns how far it got with how
        many of them: `follow` has to be called next if they are DONE, else `go_on` for each.
        """
        room, known = run.room, self.producers.known
        segment = self._local.segments.active
        log = self._held_log(segment, run.how.leader_epoch)
        offsets, times = segment.offset_index.file, segment.time_index.file
        if log is not NOT_HELD:
            most = 1 + (run.end - run.start) // (segment.index_interval_bytes + 1)
            offsets.make_room(most)
            times.make_room(most)
        self._tell(kernels, run, segment, log)
        reached, count = kernels.append_plain(
            room.buffer, room.numbers, offsets.array, times.array, room.producers, room.batches
        )
        if reached == kernels.DONE:
            self._took(segment, log, room)
            if known:
                self.producers.follow(room, 0, count)
        return reached, count

    def _tell(self, kernels: ModuleType, run: Run, segment: LogSegment, log: HeldFile) -> None:
        """Put the fields of append_kernel.PlainAppend into the room, in their order.

        By place, which takes 2 µs less than by name. log: not held, where the kernel is to write
        nothing.
        """
        local, how = self._local, run.how
        offsets, times = segment.offset_index.file, segment.time_index.file
        largest = _NO_TIME
        if log is not NOT_HELD:  # else the time index may not be there, and is not made for this
            largest = segment.largest_so_far
        _PLAIN_APPEND.pack_into(
            run.room.numbers_view,
            0,
            run.start,
            run.end,
            len(self.producers.known),
            local.place.clock(),
            log.descriptor,
            kernels.pwrite_address(),
            self._before_ms,
            self._after_ms,
            run.is_alone,
            how.is_made_for_log,
            how.leader_epoch,
            self._needs_keys,
            self._most_bytes,
            min(local.recovery_point + self._most_unflushed, _MAX_LONG),
            segment.base_offset,
            self._most_in_segment,
            segment.first_timestamp or 0,
            self._most_waited_ms - segment.jitter_ms,
            segment.index_interval_bytes,
            offsets.max_entries,
            times.max_entries,
            local.end.offset,
            segment.log.size_bytes,
            segment.bytes_since_entry,
            *largest,
            offsets.entries,
            times.entries,
        )

    def follow(self, room: Scratch, count: int) -> None:
        """The log ends behind so many batches in the room. A flush may be due to the last one, and
        what it raises is what an append of that one raises.
        """
        end = row_of(room, count - 1)[_LAST_OFFSET] + 1
        self._follow(self._local.segments.active, end)

    def _held_log(self, segment: LogSegment, epoch: int) -> HeldFile:
        """The `.log` that the kernel writes to, if an append has nothing else to do but to index
        it.
        """
        if not self._is_written_to(segment, epoch):
            return NOT_HELD
        try:
            return segment.log.file.held(True)
        except OSError:  # whoever writes meets it again; what is refused before does not
            return NOT_HELD

    def _is_written_to(self, segment: LogSegment, epoch: int) -> bool:
        """Whether appends to a segment have made what a kernel does not."""
        first_ms = segment.first_timestamp
        return (
            first_ms is not None
            and first_ms >= 0
            and self._epochs.is_assigned(epoch, self._local.end.offset)
            and segment.offset_index.file.is_open
            and segment.time_index.file.is_open
        )

    def _took(self, segment: LogSegment, log: HeldFile, room: Scratch) -> None:
        """A kernel has written to the log of a segment, and knows where that ends now."""
        _, size, since, largest_ms, largest_offset, offsets, times = _LOG_END.unpack_from(
            room.numbers_view, _LOG_END_AT
        )
        try:
            segment.log.file.wrote(log)
            segment.took(size, since, (largest_ms, largest_offset), offsets, times)
        except OSError as error:
            raise self._local.directory.failed("appending", error) from error

    def go_on(self, room: Scratch, number: int, leader_epoch: int) -> None:
        """Append the batch in the room that has a number, of which a kernel has written nothing: as
        `appending.append` does it, in the same order.
        """
        state = self._state
        start, end, last, max_timestamp, records, *_ = row_of(room, number)
        incoming = IncomingBytes(end - start, max_timestamp, last)

        def action() -> None:
            first = last - records + 1
            state.epochs.assign(leader_epoch, first)
            segment = state.local.segments.active
            if segment.should_roll(incoming, self._config):
                segment = roll(state, first)
            segment.append_one(incoming, room.view[start:end])

        state.local.directory.reported("appending", action)
        self.producers.follow(room, number, 1)
        self._follow(state.local.segments.active, last + 1)

    def _follow(self, active: LogSegment, end: int) -> None:
        """The log ends there now."""
        state, local = self._state, self._local
        local.set_end_in(active, end)
        state.watermarks.follow_end()
        state.producers.map_end_offset = end
        state.watermarks.update_first_unstable()  # a truncation that moved it forgets to
        if end - local.recovery_point >= self._config.flush_messages:
            flush(state, end, including=False)


def info_of(batch: tuple[int, ...], log_start: int) -> LogAppendInfo:
    """What an append tells of a batch. batch: as append_kernel.TakenBatch."""
    start, end, last, max_timestamp, records, _, _, codec = batch
    return LogAppendInfo(  # by place, which takes half as long as by name
        last - records + 1,
        last,
        max_timestamp,
        NO_TIMESTAMP,
        log_start,
        None,
        _CODECS[codec],
        end - start,
        records - 1,
    )


class PlainProducers:
    """Those of one log that are in the room of a thread, for the appends of one call."""

    def __init__(self, manager: ProducerStateManager) -> None:
        self._manager = manager
        self.known: list[ProducerStateEntry] = []  # that the kernel was told of

    def forget(self) -> None:
        """Begin anew: state or room may have changed."""
        self.known.clear()

    def put_all(self, room: Scratch) -> bool:
        """Tell the kernel of the producer of the one batch in the room, if it has one, and of no
        other; False where there is more to look at.
        """
        self.known.clear()
        (producer_id,) = _ID.unpack_from(room.view, PRODUCER_ID_AT)
        return producer_id == NO_PRODUCER_ID or self.put(room, producer_id)

    def put(self, room: Scratch, producer_id: int) -> bool:
        """Tell the kernel of a producer; False, and nothing is told, where there is more to look
        at than whether its next sequence follows, or no room.
        """
        manager, number = self._manager, len(self.known)
        known = manager.producers.get(producer_id)
        if (
            known is None
            or known.epoch == NO_PRODUCER_EPOCH
            or number == len(room.producers)
            or manager.verification(producer_id) is not None
            or not _rises(known)
        ):
            return False
        in_transaction = known.txn_first_offset is not None
        _PRODUCER.pack_into(
            room.producers_view,
            number * _PRODUCER.size,
            producer_id,
            known.epoch,
            known.last_sequence + 1,
            in_transaction,
        )
        self.known.append(known)
        return True

    def put_of(self, room: Scratch, start: int, end: int) -> bool:
        """Likewise of the producer of the batch at a byte of the room, which is in use up to end;
        False for one that the kernel knows.
        """
        if end - start < BATCH_HEADER_BYTES:
            return False
        (producer_id,) = _ID.unpack_from(room.view, start + PRODUCER_ID_AT)
        if producer_id == NO_PRODUCER_ID or any(k.producer_id == producer_id for k in self.known):
            return False
        return self.put(room, producer_id)

    def follow(self, room: Scratch, first: int, count: int) -> None:
        """Note so many of the batches in the room, from one on: they are in the log."""
        for row in room.batches[first : first + count].tolist():
            _, _, last_offset, max_timestamp, records, number, last_sequence, _ = row
            if number >= 0:
                known = self.known[number]
                batch = BatchMetadata(last_sequence, last_offset, records - 1, max_timestamp)
                known.add_batch(known.epoch, batch)


def _rises(known: ProducerStateEntry) -> bool:
    """Whether no batch that follows can be one of those that are remembered."""
    last = known.last_sequence
    return last >= NO_SEQUENCE and all(batch.last_sequence <= last for batch in known.batches)


_FIRST_WINDOW_BYTES, _WINDOW_BYTES = 1 << 15, 1 << 18  # as much as a processor keeps near

Int64Array = NDArray[np.int64]
AppendOne = Callable[[bytes, AppendRequest], LogAppendInfo]


class AppendedBatches(Sequence[LogAppendInfo]):
    """What came of each batch, in order, as an append by itself would have told it."""

    def __init__(self) -> None:
        self._parts: list[LogAppendInfo | tuple[Int64Array, int]] = []
        self._starts: list[int] = []  # the number of the first batch of each part
        self._count = 0

    def add(self, info: LogAppendInfo) -> None:
        """Of one more."""
        self._add(info, 1)

    def add_taken(self, batches: Int64Array, log_start: int) -> None:
        """Of some more, as rows of append_kernel.TakenBatch, which are copied."""
        self._add((batches.copy(), log_start), len(batches))

    def _add(self, part: LogAppendInfo | tuple[Int64Array, int], count: int) -> None:
        self._parts.append(part)
        self._starts.append(self._count)
        self._count += count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> LogAppendInfo: ...
    @overload
    def __getitem__(self, number: slice) -> list[LogAppendInfo]: ...
    def __getitem__(self, number: int | slice) -> LogAppendInfo | list[LogAppendInfo]:
        if isinstance(number, slice):
            return [self[n] for n in range(*number.indices(self._count))]
        at = number + self._count if number < 0 else number
        if not 0 <= at < self._count:
            raise IndexError(number)
        place = int(np.searchsorted(self._starts, at, "right")) - 1
        part = self._parts[place]
        if isinstance(part, LogAppendInfo):
            return part
        rows, log_start = part
        return info_of(rows[at - self._starts[place]].tolist(), log_start)

    def __iter__(self) -> Iterator[LogAppendInfo]:
        for part in self._parts:
            if isinstance(part, LogAppendInfo):
                yield part
            else:
                rows, log_start = part
                yield from (info_of(row, log_start) for row in rows.tolist())


class BatchAppendError(LogError):
    """One of several batches was refused, or could not be written; those before it are appended.

    cause: what an append of it by itself raises. number: of the batch, from 0 on; where entries of
    many batches could not be put in the index files, of the first one since the last write to the
    `.log`. position: where it begins in what was to be appended. appended: what came of those
    before.
    """

    def __init__(
        self, cause: LogError, number: int, position: int, appended: AppendedBatches
    ) -> None:
        super().__init__(cause, number, position, appended)
        self.cause, self.number, self.position, self.appended = cause, number, position, appended

    def __str__(self) -> str:
        return f"batch {self.number}, at byte {self.position}: {self.cause}"


class BatchAppends:
    """One call, under the log's lock."""

    def __init__(self, plain: PlainAppends, append_one: AppendOne, how: AppendRequest) -> None:
        """append_one: as Log.append_as_leader."""
        self._plain, self._append_one, self._how = plain, append_one, how
        self._done = AppendedBatches()
        self._at = 0  # behind what is appended

    def append(self, data: Bytes) -> AppendedBatches:
        """Append all whole batches. Raise BatchAppendError at the first that is refused."""
        view, window = memoryview(data), _FIRST_WINDOW_BYTES
        try:
            while self._at < len(view):
                if self._append_window(view[self._at : self._at + window]):
                    window = min(4 * window, _WINDOW_BYTES)
                    continue
                batch = next(in_memory(view[self._at :]), None)
                if batch is None:  # cut short
                    break
                size = batch.size_bytes
                one = bytes(view[self._at : self._at + size])
                self._done.add(self._append_one(one, self._how))
                self._at += size
                window = max(_FIRST_WINDOW_BYTES, min(4 * size, _WINDOW_BYTES))
        except LogError as error:
            raise BatchAppendError(error, len(self._done), self._at, self._done) from error
        return self._done

    def _append_window(self, part: memoryview) -> bool:
        """Append what is plain at the beginning of some bytes; whether there was any."""
        plain, before = self._plain, self._at
        kernels = plain.kernels_for(len(part), self._how)
        if kernels is None:
            return False
        room = scratch()
        room.put(part)
        plain.producers.forget()
        run = Run(room=room, start=0, end=len(part), is_alone=False, how=self._how)
        while run.start < run.end:
            self._append_run(kernels, run, before)
            after = run._replace(start=self._at - before)
            if after.start == run.start and not plain.producers.put_of(room, run.start, run.end):
                break
            run = after
        return self._at > before

    def _append_run(self, kernels: ModuleType, run: Run, begins_at: int) -> None:
        """Append the plain batches from the start of a run on. begins_at: where the room does."""
        plain, taken = self._plain, run.room.batches
        reached, count = plain.run(kernels, run)
        if reached == kernels.DONE:
            self._note(taken[: count - 1], begins_at)
            plain.follow(run.room, count)
            self._note(taken[count - 1 : count], begins_at)
            return
        for number in range(count):
            plain.go_on(run.room, number, self._how.leader_epoch)
            self._note(taken[number : number + 1], begins_at)

    def _note(self, batches: Int64Array, begins_at: int) -> None:
        if not len(batches):
            return
        self._done.add_taken(batches, self._plain.log_start)
        self._at = begins_at + int(batches[-1, 1])
