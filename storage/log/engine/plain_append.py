"""The append that is made nearly always, in one go: one batch that a kernel finds plain.

Such a batch (`kernels.give_plain_offsets`) gets its offsets and goes to the end of the log; it has
no producer. All other appends, and all where the kernels are not loaded, are left to `appending`,
which does the same step by step. Source: as there; spec L-13, L-18.
"""

from storage.codecs.compression import Codec
from storage.formats.batch_header import MAGIC, NO_TIMESTAMP
from storage.log.engine.appending import AppendRequest, LogAppendInfo
from storage.log.engine.compiled import COMPILED
from storage.log.engine.log_config import LogConfig
from storage.log.engine.parts import LogParts, flush, roll
from storage.log.engine.producer_append import AppendOrigin
from storage.log.engine.scratch import SCRATCH
from storage.log.engine.segment_values import IncomingBytes

_MAX_INT = 2**31 - 1
_AGES_MS = 2**62  # added to any time of today, a kernel's number can still hold it


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
        self._needs_keys = config.is_compacted
        self._before_ms = config.message_timestamp_before_max_ms
        self._after_ms = min(config.message_timestamp_after_max_ms, _AGES_MS)

    def append(self, data: bytes, how: AppendRequest) -> LogAppendInfo | None:
        """Append a batch, under the log's lock; None, and nothing is done, if it is not plain."""
        parts, size = self._parts, len(data)
        kernels = COMPILED.kernels or COMPILED.kernels_for(size)
        local = parts.local
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
        view = SCRATCH.put(data)
        now_ms, first = local.place.clock(), local.end.offset
        count, largest_ms = kernels.give_plain_offsets(
            SCRATCH.buffer,
            size,
            first,
            how.leader_epoch,
            now_ms - self._before_ms,
            now_ms + self._after_ms,
            self._needs_keys,
        )
        if not count:
            return None
        info = LogAppendInfo(
            first_offset=first,
            last_offset=first + count - 1,
            max_timestamp=largest_ms,
            log_append_time=NO_TIMESTAMP,
            log_start_offset=parts.marks.log_start,
            last_leader_epoch=None,
            source_codec=Codec.NONE,
            valid_bytes=size,
            last_offset_of_first_batch=count - 1,
        )
        try:
            self._write(view, info, how.leader_epoch)
        except OSError as error:
            raise local.directory.failed("appending", error) from error
        return info

    def _write(self, data: memoryview, info: LogAppendInfo, leader_epoch: int) -> None:
        """As `appending.append` does it, in the same order."""
        parts, config, size = self._parts, self._config, info.valid_bytes
        local, marks = parts.local, parts.marks
        first, last = info.first_offset, info.last_offset
        parts.epochs.assign(leader_epoch, first)
        segment = local.segments.active
        incoming = IncomingBytes(size, info.max_timestamp, last)
        if segment.should_roll(incoming, config):
            segment = roll(parts, first)
        segment.append_one(incoming, data)
        local.set_end(last + 1)
        marks.follow_end()
        parts.producers.map_end_offset = last + 1
        marks.update_first_unstable()
        if last + 1 - local.recovery_point >= config.flush_messages:
            flush(parts, last + 1, including=False)
