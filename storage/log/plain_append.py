"""Fast path of appends: one batch or many, of which a kernel finds that they are plain.

A kernel checks the batches, and gives them their offsets. Plain ones are without a producer, or the
next ones of a producer that has nothing else to be looked at: of the producers that the kernel
knows, it looks at nothing but their sequences (L-14.2 to L-14.4). All other appends, and all where
the kernels are not loaded, are left to `appending`, which does the same step by step.

A single batch is then written as `appending` writes it. Many are written at once, as far as the
active segment takes them, and so are their index entries; what there is then in the files and in
memory is the same as if each had been appended by itself.

Source: see `appending`; spec L-13, L-14, L-18.
"""

from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from types import ModuleType
from typing import overload

import numpy as np

from storage.codecs.compression import Codec
from storage.file_names import MAX_RELATIVE_OFFSET
from storage.formats.batch_header import (
    BATCH_HEADER_BYTES,
    MAGIC,
    MAX_LAST_OFFSET,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    PRODUCER_ID_AT,
)
from storage.log.batches import Bytes, in_memory
from storage.log.errors import LogError
from storage.log.lazy_kernels import COMPILED, KernelBuffers, scratch
from storage.log.log_config import LogConfig
from storage.log.log_state import LogState, flush, roll
from storage.log.producer_state_entry import AppendOrigin, BatchMetadata, ProducerStateEntry
from storage.log.producer_state_manager import ProducerStateManager
from storage.log.segment import IncomingBytes, Int64Array
from storage.log.validation import AppendRequest, LogAppendInfo

_CHECK = Struct("=12q")  # kernels.BatchCheck
_PRODUCER = Struct("=4q")  # kernels.PlainProducer
_ID = Struct(">q")
_TAKEN = Struct("=8q")  # kernels.TakenBatch
_SIZE, _LAST_OFFSET, _MAX_TIMESTAMP, _START = range(4)  # in a row of it

_MAX_INT = 2**31 - 1
_MAX_LONG = 2**63 - 1
_AGES = 2**62  # added to any time of today, a kernel's number can still hold it
_CODECS = tuple(Codec(number) for number in range(max(Codec) + 1))


class PlainAppends:
    """The plain appends of one log. Who calls holds the log's lock."""

    def __init__(self, state: LogState) -> None:
        self._state, self._local, self._epochs = state, state.local, state.epochs
        self.producers = PlainProducers(state.producers)
        self._take(state.config)

    def _take(self, config: LogConfig) -> None:
        """Work out of the settings what each append asks for."""
        self._config = config
        self._keeps_times = config.message_timestamp_type == "CreateTime"
        self._keeps_codec = config.compression_type in ("producer", "uncompressed")
        self._max_batch_bytes = min(config.max_message_bytes, config.segment_bytes)
        self._needs_keys = config.is_compacted
        self._before_ms = config.message_timestamp_before_max_ms
        self._after_ms = min(config.message_timestamp_after_max_ms, _AGES)

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
        if kernels is None or not BATCH_HEADER_BYTES <= size <= self._max_batch_bytes:
            return None
        buffers = scratch()
        buffers.put(data)
        self.producers.forget()
        taken = self.check(kernels, buffers, 0, size, how)
        if not taken and self.producers.put_of(buffers, 0, size):
            taken = self.check(kernels, buffers, 0, size, how)
        if taken != 1:
            return None
        batch = _TAKEN.unpack_from(buffers.batches_view)
        if batch[_SIZE] != size:
            return None
        self._write_one(buffers, batch, how.leader_epoch)
        self.follow(batch[_LAST_OFFSET])
        return info_of(batch, self.log_start)

    def check(
        self, kernels: ModuleType, buffers: KernelBuffers, start: int, end: int, how: AppendRequest
    ) -> int:
        """Let a kernel give plain batches in buffers[start:end] their offsets; return how many."""
        local = self._local
        _CHECK.pack_into(  # by place, which takes 2 µs less than by name
            buffers.numbers_view,
            0,
            start,
            end,
            len(self.producers.known),
            local.place.clock(),
            self._before_ms,
            self._after_ms,
            how.is_made_for_log,
            how.leader_epoch,
            self._needs_keys,
            self._max_batch_bytes,
            min(local.recovery_point + self._config.flush_messages, _MAX_LONG),
            local.end.offset,
        )
        count: int = kernels.check_batches(
            buffers.buffer, buffers.numbers, buffers.producers, buffers.batches
        )
        return count

    def append_taken(
        self, kernels: ModuleType, buffers: KernelBuffers, rows: slice, epoch: int
    ) -> int:
        """Append the first ones of some batches that have their offsets; return how many.

        `follow` has to be called next. rows: those of the batches, as kernels.TakenBatch.
        """
        taken = buffers.batches[rows]
        count = self._fitting(taken, epoch)
        if count:
            start, end = int(taken[0, _START]), _end_of(taken[count - 1])
            try:
                position = self._local.segments.active.append_bytes(buffers.view[start:end])
            except OSError:  # the first one that cannot be written by itself tells it
                count = 0
        if not count:
            self._write_one(buffers, taken[0].tolist(), epoch)
            return 1
        segment = self._local.segments.active
        self._local.directory.reported(
            "appending", lambda: segment.index_batches(kernels, position, taken[:count])
        )
        self.producers.follow(taken[:count])
        return count

    def _fitting(self, taken: Int64Array, epoch: int) -> int:
        """Return how many batches the active segment takes by the rules of `should_roll`.

        0: the first one has to be looked at by itself.
        """
        segment, config = self._local.segments.active, self._config
        first_ms = segment.first_timestamp
        if (
            first_ms is None
            or first_ms < 0
            or not self._epochs.is_assigned(epoch, self._local.end.offset)
        ):
            return 0
        _, first_offset, _, start, *_ = taken[0].tolist()
        count = len(taken)
        while count > 1:
            size, last_offset, _, at, *_ = taken[count - 1].tolist()
            size += at - start
            latest_ms = int(taken[:count, _MAX_TIMESTAMP].max())
            if (
                size <= config.segment_bytes - segment.size_bytes
                and latest_ms - first_ms <= config.max_segment_ms - segment.jitter_ms
                and last_offset - segment.base_offset <= MAX_RELATIVE_OFFSET
                and segment.can_index(size, first_offset)
            ):
                return count
            count //= 2
        return 0

    def _write_one(self, buffers: KernelBuffers, batch: Sequence[int], leader_epoch: int) -> None:
        """Put a batch in the buffer into the log, as `appending.append` does it, in its order.

        batch: as kernels.TakenBatch.
        """
        state = self._state
        size, last, max_timestamp, start, records, *_ = batch

        def action() -> None:
            first = last - records + 1
            state.epochs.assign(leader_epoch, first)
            incoming = IncomingBytes(size, max_timestamp, last)
            segment = state.local.segments.active
            if segment.should_roll(incoming, self._config):
                segment = roll(state, first)
            segment.append(last, buffers.view[start : start + size], [incoming])

        state.local.directory.reported("appending", action)
        if self.producers.known:
            self.producers.follow_one(batch)

    def follow(self, last_offset: int) -> None:
        """Let the log end after a batch that was written, and flush it where that is due.

        What a flush raises is what an append of that batch raises.
        """
        state, local, end = self._state, self._local, last_offset + 1
        local.set_end(end)
        state.watermarks.follow_end()
        state.producers.map_end_offset = end
        state.watermarks.update_first_unstable()  # a truncation that moved it forgets to
        if end - local.recovery_point >= self._config.flush_messages:
            flush(state, end, including=False)


def _end_of(batch: Int64Array) -> int:
    """Return where a batch ends in the buffer. batch: as kernels.TakenBatch."""
    return int(batch[_START]) + int(batch[_SIZE])


def info_of(batch: Sequence[int], log_start: int) -> LogAppendInfo:
    """Return what came of an append of a batch. batch: as kernels.TakenBatch."""
    size, last, max_timestamp, _, records, _, _, codec = batch
    return LogAppendInfo(  # by place, which takes half as long as by name
        last - records + 1,
        last,
        max_timestamp,
        NO_TIMESTAMP,
        log_start,
        None,
        _CODECS[codec],
        size,
        records - 1,
    )


class PlainProducers:
    """The producers of one log that a kernel knows, for the appends of one call."""

    def __init__(self, manager: ProducerStateManager) -> None:
        self._manager = manager
        self.known: list[ProducerStateEntry] = []  # that the kernel was told of

    def forget(self) -> None:
        """Forget them all: state or buffer may have changed."""
        self.known.clear()

    def put_of(self, buffers: KernelBuffers, start: int, end: int) -> bool:
        """Give the kernel the producer of the batch at a byte of the buffer.

        The buffer is in use up to end. False, and nothing is done, for one that the kernel knows,
        where there is more to look at than whether its next sequence follows, or where the kernel
        takes no more.
        """
        if end - start < BATCH_HEADER_BYTES:
            return False
        manager, number = self._manager, len(self.known)
        (producer_id,) = _ID.unpack_from(buffers.view, start + PRODUCER_ID_AT)
        known = manager.producers.get(producer_id)
        if (
            known is None
            or known in self.known
            or known.epoch == NO_PRODUCER_EPOCH
            or number == len(buffers.producers)
            or manager.verification(producer_id) is not None
            or not _rises(known)
        ):
            return False
        in_transaction = known.txn_first_offset is not None
        _PRODUCER.pack_into(
            buffers.producers_view,
            number * _PRODUCER.size,
            producer_id,
            known.epoch,
            known.last_sequence + 1,
            in_transaction,
        )
        self.known.append(known)
        return True

    def follow(self, taken: Int64Array) -> None:
        """Note batches that are in the log. taken: rows of kernels.TakenBatch."""
        if self.known:
            for batch in taken.tolist():
                self.follow_one(batch)

    def follow_one(self, batch: Sequence[int]) -> None:
        """Note a batch that is in the log. batch: as kernels.TakenBatch."""
        _, last_offset, max_timestamp, _, records, number, last_sequence, _ = batch
        if number >= 0:
            known = self.known[number]
            added = BatchMetadata(last_sequence, last_offset, records - 1, max_timestamp)
            known.add_batch(known.epoch, added)


def _rises(known: ProducerStateEntry) -> bool:
    """Return whether the remembered sequences rise: then no later batch can be a duplicate."""
    last = known.last_sequence
    return last >= NO_SEQUENCE and all(batch.last_sequence <= last for batch in known.batches)


_FIRST_WINDOW_BYTES, _WINDOW_BYTES = 1 << 15, 1 << 18  # as much as a processor keeps near

AppendOne = Callable[[bytes, AppendRequest], LogAppendInfo]


class AppendedBatches(Sequence[LogAppendInfo]):
    """The outcome of each batch, in order, as of an append by itself."""

    def __init__(self) -> None:
        self._parts: list[LogAppendInfo | tuple[Int64Array, int]] = []
        self._starts: list[int] = []  # the number of the first batch of each part
        self._count = 0

    def add(self, info: LogAppendInfo) -> None:
        """Add one more."""
        self._add(info, 1)

    def add_taken(self, batches: Int64Array, log_start: int) -> None:
        """Add some more, as rows of kernels.TakenBatch, which are copied."""
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
        self._at = 0  # after what is appended

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
        """Append what is plain at the beginning of some bytes; return whether there was any."""
        plain, before = self._plain, self._at
        kernels = plain.kernels_for(len(part), self._how)
        if kernels is None:
            return False
        buffers = scratch()
        buffers.put(part)
        plain.producers.forget()
        start, size = 0, len(part)
        while start < size:
            self._append_run(
                kernels, buffers, plain.check(kernels, buffers, start, size, self._how)
            )
            after = self._at - before
            if after == start and not plain.producers.put_of(buffers, start, size):
                break
            start = after
        return self._at > before

    def _append_run(self, kernels: ModuleType, buffers: KernelBuffers, count: int) -> None:
        """Append so many batches of the buffer, which have their offsets."""
        first, taken = 0, buffers.batches
        while first < count:
            rows, epoch = slice(first, count), self._how.leader_epoch
            end = first + self._plain.append_taken(kernels, buffers, rows, epoch)
            noted = end - 1  # unless a flush that is due to the last one raises
            try:
                self._plain.follow(int(taken[end - 1, _LAST_OFFSET]))
                noted = end
            finally:
                self._note(taken[first:noted])
            first = end

    def _note(self, batches: Int64Array) -> None:
        if len(batches):
            self._done.add_taken(batches, self._plain.log_start)
            self._at += _end_of(batches[-1]) - int(batches[0, _START])
