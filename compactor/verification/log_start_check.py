"""A log that begins later than before: what shows that it may.

A report of a run or of `log delete-records` says it; so does `log-start-offset-checkpoint`, as long
as the first segment begins below it: a broker drops an entry that the name of a segment says, too.
Where the settings of the topic are known, they have to allow it: retention deletes what is old, or
too much, of a topic whose policy has delete, and nobody deletes records of one that has not. Then
the leader epochs begin at the log start, too, which whoever removes a file by hand leaves as they
were.
Source: compaction C-18, L-23.2; LogManager.checkpointLogStartOffsetsInDir.
"""

from collections.abc import Iterator

import numpy as np

from compactor.host.shell_commands import named
from compactor.verification.cleaning_clock import LogClock
from compactor.verification.reader_bounds import Side, epochs_begin_at_start
from compactor.verification.reader_log import Records
from compactor.verification.verify_batches import Finding, unexplained
from storage.formats import checkpoint
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT

BY_REPORT, BY_CHECKPOINT, BY_SETTINGS = (
    "--run-report",
    checkpoint.LOG_START,
    "--topic-configs",
)


class LogStartCheck:
    """Takes in the records that are gone since the log begins later."""

    def __init__(self, before: Side, after: Side, said: int | None, clock: LogClock) -> None:
        """said: what the checkpoint says of the log after."""
        self._before, self._after, self._clock = before, after, clock
        self._start = after.log_start_offset
        self._has_risen = self._start > before.log_start_offset
        reported = clock.evidence.reported.log_start
        self._is_reported = reported is not None and reported >= self._start
        self._is_said = said == self._start
        self._is_cut = epochs_begin_at_start(after)
        self._latest_ms = -1  # of the records that are gone for no other reason

    @property
    def shown_by(self) -> str:
        """What shows that the log begins later."""
        if self._is_reported:
            return BY_REPORT
        return BY_CHECKPOINT if self._is_said else BY_SETTINGS

    def note(self, gone: Records) -> None:
        """Meet records that are gone for no other reason."""
        if len(gone.offsets):
            self._latest_ms = max(self._latest_ms, int(np.max(gone.timestamps)))

    def findings(self) -> Iterator[Finding]:
        """What is not explained. To be called at the end."""
        if not self._has_risen or self._is_reported:
            return
        settings, path = self._clock.evidence.settings, self._after.listing.path
        begins = (
            f"the log begins at offset {self._start}, before at {self._before.log_start_offset}"
        )
        if settings is None:
            if not self._is_said:
                problem = f"{begins}, and {checkpoint.LOG_START} does not say so"
                sources = (
                    f"{BY_REPORT} with the report of a run or of {named('log delete-records')}, or "
                    f"{BY_SETTINGS} with retention.ms, would explain it"
                )
                yield unexplained(path, 0, f"{problem}; {sources}")
            return
        why_not = self._why_not()
        if why_not is None and not (self._is_said or self._is_cut):
            why_not = (
                f"and neither {checkpoint.LOG_START} nor {LEADER_EPOCH_CHECKPOINT} begins there, "
                "as after a deletion"
            )
        if why_not is not None:
            source = f"--run-report with that of a run or of {named('log delete-records')}"
            yield unexplained(path, 0, f"{begins}, {why_not}; {source} would explain it")

    def _why_not(self) -> str | None:
        """Why the settings do not allow it; None: they do."""
        settings = self._clock.evidence.settings
        assert settings is not None
        if not settings.has_retention:
            return "and cleanup.policy of its topic has no delete"
        if settings.retention_bytes >= 0 and self._left_bytes() >= settings.retention_bytes:
            return None
        if settings.retention_ms < 0:
            return "and neither retention.ms nor retention.bytes of its topic deletes that"
        now_ms = self._clock.evidence.now_ms or self._clock.as_of_ms
        if self._latest_ms >= now_ms - settings.retention_ms:
            return (
                f"and a record of {self._latest_ms} that is gone is younger than retention.ms "
                f"{settings.retention_ms}"
            )
        return None

    def _left_bytes(self) -> int:
        """At most as much as there was when the last segment went: what was there before, and what
        was appended since.
        """
        end = self._before.log_end_offset
        left = [s for s in self._before.listing.segments if s.base_offset >= self._start]
        new = [s for s in self._after.listing.segments if s.base_offset >= end]
        grown = self._after.listing.segments if self._after.log_end_offset > end else ()
        return sum(s.log_bytes for s in (*left, *(new or grown)))
