"""The append that is made nearly always, in one go: one batch that a kernel finds plain.

Such a batch (`append_kernel`) gets its offsets and goes to the end of the log; it has no producer.
The kernel writes it, and its index entries, where nothing else is to be done; else the rest is done
here. All other appends, and all where the kernels are not loaded, are left to `appending`, which
does the same step by step. Source: as there; spec L-13, L-18.
"""

from struct import Struct
from types import ModuleType
from typing import NamedTuple

from storage.codecs.compression import Codec
from storage.files.files import NOT_HELD, HeldFile
from storage.formats.batch_header import MAGIC, NO_TIMESTAMP
from storage.log.engine.appending import AppendRequest, LogAppendInfo
from storage.log.engine.compiled import COMPILED
from storage.log.engine.file_records import LargestTimestamp
from storage.log.engine.log_config import LogConfig
from storage.log.engine.parts import LogParts, flush, roll
from storage.log.engine.producer_append import AppendOrigin
from storage.log.engine.scratch import Scratch, scratch
from storage.log.engine.segment import LogSegment
from storage.log.engine.segment_values import IncomingBytes

_MAX_INT = 2**31 - 1
_AGES_MS = 2**62  # added to any time of today, a kernel's number can still hold it


_NO_TIME = LargestTimestamp(NO_TIMESTAMP, 0)
_FIELDS = Struct("=22q")


class Files(NamedTuple):
    """Of a segment, for a kernel to write to."""

    log: HeldFile
    offset_index: HeldFile
    time_index: HeldFile


_NONE = Files(NOT_HELD, NOT_HELD, NOT_HELD)


class PlainAppends:
    """Of one log."""

    def __init__(self, parts: LogParts) -> None:
        self._parts = parts
        self._take(parts.config)

    def _take(self, config: LogConfig) -> None:
        """Reckon out of the settings what each append asks for."""
        self._config = config
        self._takes_any = (
            config.message_timestamp_type == "CreateTime"
            and config.compression_type in ("producer", "uncompressed")
        )
        self._most_bytes = min(config.max_message_bytes, config.segment_bytes)
        self._most_in_segment, self._most_waited_ms = config.segment_bytes, config.max_segment_ms
        self._needs_keys = config.is_compacted
        self._before_ms = config.message_timestamp_before_max_ms
        self._after_ms = min(config.message_timestamp_after_max_ms, _AGES_MS)

    def append(self, data: bytes, how: AppendRequest) -> LogAppendInfo | None:
        """Append a batch, under the log's lock; None, and nothing is done, if it is not plain."""
        size, local = len(data), self._parts.local
        kernels = COMPILED.kernels or COMPILED.kernels_for(size)
        if kernels is None or local.is_closed or local.directory.is_offline:
            return None
        if local.config is not self._config:
            self._take(local.config)
        if (
            not self._takes_any
            or size > self._most_bytes
            or how.origin is not AppendOrigin.CLIENT
            or how.target_magic != MAGIC
            or how.is_made_for_log
            or not 0 <= how.leader_epoch <= _MAX_INT
        ):
            return None
        room = scratch()
        room.put(data)
        try:
            return self._append(kernels, room, size, how.leader_epoch)
        except OSError as error:
            raise local.directory.failed("appending", error) from error

    def _append(
        self, kernels: ModuleType, room: Scratch, size: int, epoch: int
    ) -> LogAppendInfo | None:
        """Append what is in the room, if it is plain."""
        local = self._parts.local
        segment, first = local.segments.active, local.end.offset
        files = self._files_of(segment, epoch)
        self._tell(room, size, epoch, segment, files)
        reached, count, largest_ms, entries = kernels.append_plain(
            kernels.pwrite_address(),
            room.buffer,
            room.numbers,
            segment.offset_index.file.array,
            segment.time_index.file.array,
        )
        if reached == kernels.NOT_PLAIN:
            return None
        incoming = IncomingBytes(size, largest_ms, first + count - 1)
        if reached == kernels.READY:
            self._write(room.view[:size], first, incoming, epoch)
        else:
            try:
                if reached == kernels.DONE:
                    segment.took_one(incoming, entries)
                else:
                    segment.wrote_one(incoming)
            finally:
                if not all(file.is_kept for file in files):
                    segment.sync()
        self._follow(incoming.last_offset)
        return LogAppendInfo(
            first_offset=first,
            last_offset=incoming.last_offset,
            max_timestamp=largest_ms,
            log_append_time=NO_TIMESTAMP,
            log_start_offset=self._parts.marks.log_start,
            last_leader_epoch=None,
            source_codec=Codec.NONE,
            valid_bytes=size,
            last_offset_of_first_batch=count - 1,
        )

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

    def _tell(
        self, room: Scratch, size: int, epoch: int, segment: LogSegment, files: Files
    ) -> None:
        """Put the fields of `append_kernel.PlainAppend` where the kernel takes them from."""
        local = self._parts.local
        offsets, times = segment.offset_index.file, segment.time_index.file
        log, of_offsets, of_times = (file.descriptor for file in files)
        now_ms, largest = local.place.clock(), _NO_TIME
        if log >= 0:  # else the time index may not be there, and is not made for this
            largest = segment.largest_so_far
        _FIELDS.pack_into(
            room.numbers_view,
            0,
            size,
            local.end.offset,
            epoch,
            now_ms - self._before_ms,
            now_ms + self._after_ms,
            self._needs_keys,
            log,
            of_offsets,
            of_times,
            segment.log.size_bytes,
            segment.base_offset,
            self._most_in_segment,
            segment.first_timestamp or 0,
            self._most_waited_ms - segment.jitter_ms,
            segment.bytes_since_entry,
            segment.index_interval_bytes,
            largest.timestamp_ms,
            largest.offset,
            offsets.entries,
            offsets.max_entries,
            times.entries,
            times.max_entries,
        )

    def _write(
        self, data: memoryview, first: int, incoming: IncomingBytes, leader_epoch: int
    ) -> None:
        """As `appending.append` does it, in the same order."""
        parts = self._parts
        parts.epochs.assign(leader_epoch, first)
        segment = parts.local.segments.active
        if segment.should_roll(incoming, self._config):
            segment = roll(parts, first)
        segment.append_one(incoming, data)

    def _follow(self, last: int) -> None:
        parts, local = self._parts, self._parts.local
        local.set_end(last + 1)
        parts.marks.follow_end()
        parts.producers.map_end_offset = last + 1
        parts.marks.update_first_unstable()  # which a truncation may have moved, and forgets to
        if last + 1 - local.recovery_point >= self._config.flush_messages:
            flush(parts, last + 1, including=False)
