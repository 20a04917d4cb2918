"""The append that is made nearly always, in one go: batches that a kernel finds plain.

Such batches (`append_kernel`) get their offsets and go to the end of the log; they are without a
producer, or the next ones of a producer that has nothing else to be looked at. The kernel writes
them, and their index entries, where nothing else is to be done; else the rest is done here. All
other appends, and all where the kernels are not loaded, are left to `appending`, which does the
same step by step. Source: as there; spec L-13, L-14, L-18.
"""

from struct import Struct
from types import ModuleType
from typing import NamedTuple

from storage.codecs.compression import Codec
from storage.files.files import NOT_HELD, HeldFile
from storage.formats.batch_header import (
    BATCH_HEADER_BYTES,
    MAGIC,
    MAX_LAST_OFFSET,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    PRODUCER_ID_AT,
)
from storage.log.engine.appending import AppendRequest, LogAppendInfo
from storage.log.engine.compiled import COMPILED
from storage.log.engine.file_records import LargestTimestamp
from storage.log.engine.log_config import LogConfig
from storage.log.engine.parts import LogParts, flush, roll
from storage.log.engine.plain_producers import PlainProducers
from storage.log.engine.producer_append import AppendOrigin
from storage.log.engine.scratch import Scratch, scratch
from storage.log.engine.segment import LogSegment
from storage.log.engine.segment_values import IncomingBytes, SegmentEnd

_MAX_INT = 2**31 - 1
_MAX_LONG = 2**63 - 1
_AGES = 2**62  # added to any time of today, a kernel's number can still hold it
_NO_TIME = LargestTimestamp(NO_TIMESTAMP, 0)
_GIVEN = Struct("=28q")  # append_kernel.PlainAppend
_CHANGED = Struct("=7q")  # what of it is as after the append
_CHANGED_AT = _GIVEN.size - _CHANGED.size
_TAKEN = Struct("=8q")  # append_kernel.TakenBatch
_PRODUCER_ID = Struct(">q")
_CODECS = tuple(Codec(number) for number in range(max(Codec) + 1))


class Files(NamedTuple):
    """Of a segment, for a kernel to write to."""

    log: HeldFile
    offset_index: HeldFile
    time_index: HeldFile


class Run(NamedTuple):
    """Batches in the room of a thread, and how they are appended."""

    room: Scratch
    start: int
    end: int
    is_alone: bool  # there has to be one batch, and nothing behind it
    how: AppendRequest


_NONE = Files(NOT_HELD, NOT_HELD, NOT_HELD)


class PlainAppends:
    """Of one log. Whoever calls holds the log's lock."""

    def __init__(self, parts: LogParts) -> None:
        self._parts = parts
        self.producers = PlainProducers(parts.producers)
        self._take(parts.config)

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
        return self._parts.marks.log_start

    def kernels_for(self, size_bytes: int, how: AppendRequest) -> ModuleType | None:
        """The kernels, where an append of so many bytes may be plain."""
        local = self._parts.local
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
        self.producers.forget()
        (producer_id,) = _PRODUCER_ID.unpack_from(data, PRODUCER_ID_AT)
        if producer_id != NO_PRODUCER_ID and not self.producers.put(room, producer_id):
            return None
        room.put(data)
        run = Run(room=room, start=0, end=size, is_alone=True, how=how)
        reached, count = self.run(kernels, run)
        if not count:
            return None
        if reached == kernels.DONE:
            self.follow(room, count)
        else:
            self.go_on(reached == kernels.READY, room, 0, how.leader_epoch)
        return info_of(_row(room, 0), self._parts.marks.log_start)

    def run(self, kernels: ModuleType, run: Run) -> tuple[int, int]:
        """Let a kernel append batches, as far as they are plain. Returns how far it got with how
        many of them: `follow` has to be called next if they are DONE, else `go_on` for each."""
        local, room = self._parts.local, run.room
        segment = local.segments.active
        files = self._files_of(segment, run.how.leader_epoch)
        self._tell(run, segment, files)
        reached, count = kernels.append_plain(
            kernels.pwrite_address(),
            room.buffer,
            room.numbers,
            segment.offset_index.file.array,
            segment.time_index.file.array,
            room.producers,
            room.batches,
        )
        if reached == kernels.WRITTEN:
            local.directory.reported("appending", lambda: segment.log.wrote(files.log))
        if reached == kernels.DONE:
            changed = _CHANGED.unpack_from(room.numbers_view, _CHANGED_AT)
            _, size, since, largest_ms, largest_offset, offsets, times = changed
            largest = LargestTimestamp(largest_ms, largest_offset)
            try:
                _wrote(segment, files, offsets, times)
                segment.took(SegmentEnd(size, since, largest, offsets, times))
            except OSError as error:
                raise local.directory.failed("appending", error) from error
            self.producers.follow(room, 0, count)
        return reached, count

    def follow(self, room: Scratch, count: int) -> None:
        """The log ends behind so many batches in the room. A flush may be due to the last one, and
        what it raises is what an append of that one raises."""
        _, _, last, *_ = _row(room, count - 1)
        self._follow(last + 1)

    def _files_of(self, segment: LogSegment, epoch: int) -> Files:
        """Those of a segment, if all that an append has to do is to write to them."""
        offsets, times = segment.offset_index.file, segment.time_index.file
        first_ms = segment.first_timestamp
        if (
            first_ms is None
            or first_ms < 0
            or not self._parts.epochs.is_assigned(epoch, self._parts.local.end.offset)
            or not (offsets.is_open and times.is_open)
        ):
            return _NONE
        try:
            return Files(segment.log.held(True), offsets.held(), times.held())
        except OSError:  # whoever writes meets it again; what is refused before does not
            return _NONE

    def _tell(self, run: Run, segment: LogSegment, files: Files) -> None:
        """Put the fields of `append_kernel.PlainAppend` where the kernel takes them from."""
        local = self._parts.local
        offsets, times = segment.offset_index.file, segment.time_index.file
        log, of_offsets, of_times = (file.descriptor for file in files)
        now_ms, largest = local.place.clock(), _NO_TIME
        if log >= 0:  # else the time index may not be there, and is not made for this
            largest = segment.largest_so_far
            if not run.is_alone:
                most = 1 + (run.end - run.start) // (segment.index_interval_bytes + 1)
                offsets.make_room(most)
                times.make_room(most)
        _GIVEN.pack_into(
            run.room.numbers_view,
            0,
            run.start,
            run.end,
            run.is_alone,
            run.how.is_made_for_log,
            run.how.leader_epoch,
            now_ms - self._before_ms,
            now_ms + self._after_ms,
            self._needs_keys,
            self._most_bytes,
            self.producers.count,
            min(local.recovery_point + self._most_unflushed, _MAX_LONG),
            log,
            of_offsets,
            of_times,
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
            largest.timestamp_ms,
            largest.offset,
            offsets.entries,
            times.entries,
        )

    def go_on(self, is_to_write: bool, room: Scratch, number: int, leader_epoch: int) -> None:
        """Do what a kernel has left to do of the batch in the room that has a number: as
        `appending.append` does it, in the same order. is_to_write: nothing of it was written."""
        parts = self._parts
        start, end, last, max_timestamp, records, *_ = _row(room, number)
        incoming = IncomingBytes(end - start, max_timestamp, last)

        def action() -> None:
            if not is_to_write:
                parts.local.segments.active.wrote_one(incoming)
                return
            first = last - records + 1
            parts.epochs.assign(leader_epoch, first)
            segment = parts.local.segments.active
            if segment.should_roll(incoming, self._config):
                segment = roll(parts, first)
            segment.append_one(incoming, room.view[start:end])

        parts.local.directory.reported("appending", action)
        self.producers.follow(room, number, 1)
        self._follow(last + 1)

    def _follow(self, end: int) -> None:
        """The log ends there now."""
        parts, local = self._parts, self._parts.local
        local.set_end(end)
        parts.marks.follow_end()
        parts.producers.map_end_offset = end
        parts.marks.update_first_unstable()  # which a truncation may have moved, and forgets to
        if end - local.recovery_point >= self._config.flush_messages:
            flush(parts, end, including=False)


def _wrote(segment: LogSegment, files: Files, offsets: int, times: int) -> None:
    """Tell the files that a kernel has written to. offsets, times: entries that there are now."""
    segment.log.wrote(files.log)
    if offsets != segment.offset_index.file.entries:
        segment.offset_index.file.wrote(files.offset_index)
    if times != segment.time_index.file.entries:
        segment.time_index.file.wrote(files.time_index)


def _row(room: Scratch, number: int) -> tuple[int, ...]:
    return _TAKEN.unpack_from(room.batches_view, number * _TAKEN.size)


def info_of(batch: tuple[int, ...], log_start: int) -> LogAppendInfo:
    """What an append tells of a batch. batch: as append_kernel.TakenBatch."""
    start, end, last, max_timestamp, records, _, _, codec = batch
    return LogAppendInfo(
        first_offset=last - records + 1,
        last_offset=last,
        max_timestamp=max_timestamp,
        log_append_time=NO_TIMESTAMP,
        log_start_offset=log_start,
        last_leader_epoch=None,
        source_codec=_CODECS[codec],
        valid_bytes=end - start,
        last_offset_of_first_batch=records - 1,
    )
