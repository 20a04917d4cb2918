"""Where a log begins, how far it is replicated, and how far its transactions are decided.

Source: Kafka, UnifiedLog; spec L-17, C-4.5.
"""

from storage.log.errors import IllegalArgumentError, OffsetOutOfRangeError
from storage.log.local_log import LocalLog
from storage.log.offsets import OffsetMetadata
from storage.log.producer_state_manager import ProducerStateManager


class Watermarks:
    """Log start, high watermark and first unstable offset. Changed under the log's lock.

    The high watermark and the first unstable offset may be known without their place; who needs
    that looks for the batch, and then its base offset takes the place of the value.
    """

    def __init__(self, local: LocalLog, producers: ProducerStateManager, log_start: int) -> None:
        self._local, self._producers = local, producers
        self.log_start = log_start
        self._high_watermark = OffsetMetadata(log_start)
        self.first_unstable: OffsetMetadata | None = None

    # ---- high watermark -----------------------------------------------------------------------

    @property
    def high_watermark(self) -> int:
        return self._high_watermark.offset

    def high_watermark_place(self) -> OffsetMetadata:
        self._local.require_open()
        if self._high_watermark.is_offset_only:
            self._set_high_watermark(self.place_of(self.high_watermark))
        return self._high_watermark

    def set_high_watermark(self, to: OffsetMetadata) -> int:
        """Move it, also down, but not below the log start or past the end; give where it is."""
        end = self._local.end
        if to.offset < self.log_start:
            to = OffsetMetadata(self.log_start)
        elif to.offset >= end.offset:
            to = end
        self._set_high_watermark(to)
        return to.offset

    def increment_high_watermark(self, to: OffsetMetadata) -> OffsetMetadata | None:
        """Move it up; give what it was, None if it did not move."""
        if to.offset > self._local.end_offset:
            raise IllegalArgumentError(f"high watermark {to.offset}, past the end of the log")
        before = self.high_watermark_place()
        is_newer = before.offset == to.offset and before.segment < to.segment
        if before.offset < to.offset or is_newer:
            self._set_high_watermark(to)
            return before
        return None

    def follow_end(self) -> None:
        """Take the place of the log end, where the high watermark has got there."""
        if self._high_watermark.offset >= self._local.end.offset:
            self._set_high_watermark(self._local.end)

    def _set_high_watermark(self, to: OffsetMetadata) -> None:
        if to.offset < 0:
            raise IllegalArgumentError(f"high watermark {to.offset}")
        self._high_watermark = to
        self._producers.on_high_watermark(to.offset)
        self.update_first_unstable()

    # ---- last stable offset -------------------------------------------------------------------

    @property
    def last_stable(self) -> int:
        unstable = self.first_unstable
        if unstable is not None and unstable.offset < self.high_watermark:
            return unstable.offset
        return self.high_watermark

    def last_stable_place(self) -> OffsetMetadata:
        self._local.require_open()
        high_watermark = self.high_watermark_place()
        unstable = self.first_unstable
        if unstable is None or unstable.offset >= high_watermark.offset:
            return high_watermark
        if unstable.is_offset_only:
            unstable = self.first_unstable = self.place_of(unstable.offset)
        return unstable

    def update_first_unstable(self) -> None:
        """Ask the producers again."""
        self._local.require_open()
        found = self._producers.first_unstable
        if found is not None and (found.is_offset_only or found.offset < self.log_start):
            found = self.place_of(max(found.offset, self.log_start))
        self.first_unstable = found

    def place_of(self, offset: int) -> OffsetMetadata:
        """The place of the batch that holds an offset; the offset alone if none does."""
        try:
            place: OffsetMetadata = self._local.directory.guarded(
                "reading the log", lambda: self._local.place_of(offset)
            )
            return place
        except OffsetOutOfRangeError:
            return OffsetMetadata(offset)

    def require_readable(self, offset: int) -> None:
        if offset < self.log_start:
            raise OffsetOutOfRangeError(f"offset {offset} is below the log start {self.log_start}")

    # ---- log start ----------------------------------------------------------------------------

    def set_log_start(self, offset: int) -> None:
        """The log begins there; nothing that it holds is below."""
        self.log_start = offset
        if self.high_watermark < offset:
            self.set_high_watermark(OffsetMetadata(offset))
        self._local.recovery_point = max(self._local.recovery_point, offset)
