"""What became of the records that `log append` has added since the copy was made, by its report."""

from collections.abc import Iterator

from compactor.host.shell_commands import named
from compactor.verification.cleaning_clock import LogClock
from compactor.verification.reader_bounds import Bounds, Side
from compactor.verification.reader_kernels import Int64Array, Secret
from compactor.verification.reader_log import LogReader
from compactor.verification.verify_batches import Finding, unexplained


class AppendedRecords:
    """Each is there, or was superseded by another, or is a tombstone that may have gone."""

    def __init__(self, after: Side, bounds: Bounds, secret: Secret, clock: LogClock) -> None:
        self._after, self._bounds, self._secret, self._clock = after, bounds, secret, clock
        start, end = after.log_start_offset, bounds.log_end_offset
        appended = clock.evidence.reported.appended
        self._missing = {a.offset: a for a in appended if a.offset >= max(start, end)}
        self._latest = {a.key: a.offset for a in appended}

    def note(self, offsets: Int64Array) -> None:
        """Meet records that are there."""
        if self._missing:
            for offset in offsets.tolist():
                self._missing.pop(offset, None)

    def _note_behind(self) -> None:
        """Meet those that no cleaning has reached, which nobody else reads."""
        listing = self._after.listing
        behind = [s for s in listing.segments if s.base_offset >= self._bounds.rewritten_end]
        if self._missing:
            for _, records in LogReader(listing.path, behind, self._secret).chunks():
                self.note(records.offsets)

    def findings(self) -> Iterator[Finding]:
        """What is gone without a reason. To be called at the end. CorruptFileError."""
        self._note_behind()
        evidence, path = self._clock.evidence, self._after.listing.path
        reported_end = evidence.reported.log_end
        if evidence.reported.truncated_to is not None:
            reported_end = None  # records that were cleaned away no longer say where it ends
        if reported_end is not None and self._after.log_end_offset < reported_end:
            problem = (
                f"log end offset {self._after.log_end_offset}, by the last report {reported_end}"
            )
            yield unexplained(path, 0, problem)
        now_ms = evidence.now_ms or self._clock.as_of_ms
        may_expire = not evidence.is_accounted_for and evidence.allows_expiry(now_ms)
        for offset, one in sorted(self._missing.items()):
            if offset < self._bounds.end:
                is_superseded = one.key is None or self._latest[one.key] > offset
                is_expired = one.is_tombstone and (may_expire or offset < evidence.expired_below())
                if is_superseded or is_expired:
                    continue
            problem = f"offset {offset}: a record that {named('log append')} has added is gone"
            yield unexplained(path, 0, f"{problem} without a reason")
