"""Records that are gone: each needs a reason, and something that shows it.

The first reason that holds is counted. A tombstone or marker without a delete horizon may have got
one in a cleaning since the copy was made, and have gone in another: that is known where two
reported rounds went over it, far enough apart. Where the cleaner's checkpoint, or a delete horizon,
shows an unreported cleaning, it may have gone if the time was long enough.
Rules: compaction C-6.1, C-7.5, C-7.11, C-11.2, C-11.3.
"""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from compactor.host.shell_commands import named
from compactor.log_checks.findings import Finding, unexplained
from compactor.verification.evidence import LogClock
from compactor.verification.header_check import Horizons
from compactor.verification.proof import (
    ABORTED,
    EXPIRED,
    MARKERS,
    MAX_FINDINGS,
    NULL_KEY,
    RETENTION,
    SUPERSEDED,
    Proof,
)
from compactor.verification.reader_bounds import RemovalBounds, Side, epochs_begin_at_start
from compactor.verification.reader_kernels import HAS_KEY, TOMBSTONE, Int64Array, LatestOffsets
from compactor.verification.reader_log import Batches, LogReader, Records, decoded
from compactor.verification.reader_slices import OffsetSlice
from compactor.verification.reader_transactions import BoolArray
from storage.formats import checkpoint
from storage.formats.batch_header import CONTROL, DELETE_HORIZON, MAGIC
from storage.formats.control_record import ControlType
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
        """Return an upper limit of the log's bytes when its last segment was deleted.

        That is what was left of the log before, and what was appended since.
        """
        end = self._before.log_end_offset
        left = [s for s in self._before.listing.segments if s.base_offset >= self._start]
        new = [s for s in self._after.listing.segments if s.base_offset >= end]
        grown = self._after.listing.segments if self._after.log_end_offset > end else ()
        return sum(s.log_bytes for s in (*left, *(new or grown)))


_BY_REPORTS = "the reports of two runs that went over it (--run-report)"
_BY_SETTINGS = "delete.retention.ms (--topic-configs)"


class Books(NamedTuple):
    """What the proof of one partition knows, for what is gone."""

    before: Side
    reader: LogReader  # of the log before
    bounds: RemovalBounds
    latest: LatestOffsets
    horizons: Horizons
    deleted_to: int  # with their segments


class GoneRecords:
    """Takes what is gone of one partition, a slice at a time."""

    def __init__(self, books: Books, clock: LogClock, log_start: LogStartCheck, proof: Proof):
        self._books, self._clock, self._log_start, self._proof = books, clock, log_start, proof
        self._deleted_to = books.deleted_to
        self._expired_below = clock.evidence.expired_below()
        self._pending: dict[str, list[Finding]] = {EXPIRED: [], MARKERS: []}
        self._pending_count = {EXPIRED: 0, MARKERS: 0}
        appended = clock.evidence.reported.appended
        self._appended = {each.key: each.offset for each in appended if each.key is not None}

    def check(self, old: OffsetSlice, is_gone: BoolArray) -> None:
        """Data records that are gone from a slice."""
        bounds = self._books.bounds
        gone = old.records.of(is_gone)
        batch = old.all_batches[gone.batches]
        in_map = gone.offsets < bounds.end
        has_key = gone.kinds & HAS_KEY != 0
        is_tombstone = in_map & (gone.kinds & TOMBSTONE != 0)
        is_old = gone.offsets < self._deleted_to
        reasons = (
            (RETENTION, is_old),
            (ABORTED, old.aborted[gone.batches] & (gone.offsets < bounds.rewritten_end)),
            (NULL_KEY, in_map & ~has_key),
            (SUPERSEDED, in_map & has_key & (self._books.latest.of(gone.keys) > gone.offsets)),
            (EXPIRED, is_tombstone & self._is_expired(batch, gone.offsets)),
        )
        left = batch["attributes"] & CONTROL == 0
        for reason, holds in reasons:
            self._proof.gone[reason] += int((left & holds).sum())
            if reason == EXPIRED:
                has_horizon = batch["attributes"] & DELETE_HORIZON != 0
                self._books.horizons.note_reached(batch[left & holds & has_horizon])
            left = left & ~holds
        others = np.logical_or.reduce([holds for _, holds in reasons[1:]])
        self._log_start.note(gone.of(is_old & ~others & (batch["attributes"] & CONTROL == 0)))
        for row in np.flatnonzero(left).tolist():
            what = "the latest record of its key" if in_map[row] and has_key[row] else "a record"
            self._find(old, int(np.flatnonzero(is_gone)[row]), what)
            if self._proof.is_full:
                return

    def _find(self, old: OffsetSlice, row: int, what: str) -> None:
        records, batch = old.records, old.all_batches[old.records.batches[row]]
        offset = int(records.offsets[row])
        if self._is_superseded_by_appended(batch, offset):
            self._proof.gone[SUPERSEDED] += 1
            return
        is_tombstone = bool(records.kinds[row] & TOMBSTONE)
        if is_tombstone:
            what += ", a tombstone before its delete horizon,"
        problem = f"offset {offset}: {what} is gone without a reason"
        finding = unexplained(*self._books.reader.place(batch), problem)
        if is_tombstone and _may_get_horizon(batch) and offset < self._books.bounds.end:
            self._wait(EXPIRED, finding)
        else:
            self._proof.take(finding)

    def _is_superseded_by_appended(self, batch: np.void, offset: int) -> bool:
        """Whether `log append` has written a later record of the key that may be gone by now."""
        if not self._appended or offset >= self._books.bounds.end:
            return False
        path, _ = self._books.reader.place(batch)
        key = next(r for r in decoded(path, batch) if r.offset == offset).key
        if key is None:
            return False
        later = self._appended.get(hashlib.sha256(key).hexdigest(), -1)
        return offset < later < self._books.bounds.end

    def _is_expired(self, batch: Batches, offsets: Int64Array) -> BoolArray:
        """Whether tombstones of a batch may have gone (C-11.3, C-6.1)."""
        before = self._books.before
        is_modern = batch["magic"] == MAGIC
        horizon = (batch["attributes"] & DELETE_HORIZON != 0) & is_modern
        expired: BoolArray = horizon & (batch["base_timestamp"] <= self._clock.as_of_ms)
        expired |= ~horizon & is_modern & (offsets < self._expired_below)
        segments = before.listing.segments
        clean_to = max(before.cleaned_to or 0, before.log_start_offset)
        clock = max((s.log_mtime_ns for s in segments if s.base_offset < clean_to), default=0)
        times = np.array([s.log_mtime_ns for s in segments] or [0], np.int64)
        expired |= ~is_modern & (times[batch["segment"]] <= clock)
        return expired

    def check_marker(self, batch: np.void, data: int) -> None:
        """A marker that is gone had no data left. data: where the last of it stands; -1: none."""
        offset = int(batch["base_offset"])
        if offset < self._deleted_to:
            self._proof.gone[RETENTION] += int(batch["records_count"])
            return
        is_marker = batch["marker"] in (ControlType.ABORT, ControlType.COMMIT)
        has_horizon = batch["attributes"] & DELETE_HORIZON != 0
        problem = ""
        if not is_marker:
            problem = "a control record that is no marker is gone"
        elif data >= 0:
            problem = f"a marker is gone, and data of its transaction is left at offset {data}"
        elif has_horizon and batch["base_timestamp"] <= self._clock.as_of_ms:
            self._books.horizons.note_reached(batch.reshape(1))
        elif has_horizon or offset >= self._expired_below:
            problem = "a marker is gone before its delete horizon"
        if not problem:
            self._proof.gone[MARKERS] += 1
            return
        finding = unexplained(*self._books.reader.place(batch), f"offset {offset}: {problem}")
        if is_marker and data < 0 and not has_horizon:
            self._wait(MARKERS, finding)
        else:
            self._proof.take(finding)

    def _wait(self, reason: str, finding: Finding) -> None:
        """Decide in the end on a tombstone or marker that is gone without a delete horizon."""
        self._pending_count[reason] += 1
        if len(self._pending[reason]) <= MAX_FINDINGS:
            self._pending[reason].append(finding)

    def finish(self) -> None:
        """Decide on what had no delete horizon, now that all that were set are known."""
        evidence = self._clock.evidence
        now_ms = evidence.now_ms or self._clock.as_of_ms
        shows_more = not evidence.is_accounted_for or bool(self._books.horizons.unreported)
        is_possible = shows_more and evidence.allows_expiry(now_ms)
        for reason, pending in self._pending.items():
            if is_possible:
                self._proof.gone[reason] += self._pending_count[reason]
                self._proof.possible_removals += self._pending_count[reason]
                continue
            sources = [_BY_REPORTS]
            sources += [_BY_SETTINGS] if evidence.delete_retention_ms is None else []
            for finding in pending:
                problem = f"{finding.problem}; {', or '.join(sources)} would explain it"
                self._proof.take(finding._replace(problem=problem))


def _may_get_horizon(batch: np.void) -> bool:
    return bool(batch["magic"] == MAGIC and not batch["attributes"] & DELETE_HORIZON)
