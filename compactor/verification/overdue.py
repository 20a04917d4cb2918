"""Records and batches that a complete cleaning had to remove, and that are left.

None of them is lost, and a reader that keeps the latest record of a key sees no difference; but the
cleaner decided wrongly, and somebody may rely on a record to be gone. Only what is certain is
reported: the checkpoint says up to where the log was cleaned; what goes by the clock
is checked only where the clock of the cleaning is known; and nothing is reported of a log whose
`.txnindex` and markers disagreed before, where a cleaner takes other records for aborted than a
reader does.
Rules: compaction C-4.1, C-7.5, C-7.11, C-10.2, C-10.4, C-10.5, C-11.2, C-11.3.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

import numpy as np

from compactor.log_checks.findings import Finding, difference
from compactor.verification.evidence import LogClock
from compactor.verification.proof import MAX_FINDINGS
from compactor.verification.reader_bounds import RemovalBounds, Side
from compactor.verification.reader_kernels import HAS_KEY, TOMBSTONE, LatestOffsets
from compactor.verification.reader_log import Batches, Records
from compactor.verification.reader_transactions import BoolArray
from storage.formats.batch_header import CONTROL, DELETE_HORIZON, MAGIC, TRANSACTIONAL
from storage.formats.producer_snapshot import ProducerEntry


class LastBatches:
    """Batches that a cleaning keeps for their producer: its last, empty if need be.

    They hold the sequence number, or the epoch, from which the producer goes on.
    Rule: compaction C-10.4.
    """

    def __init__(self, entries: Mapping[int, ProducerEntry]) -> None:
        self._entries = entries

    def has(self, batch: np.void) -> bool:
        """Whether a batch is the last of its producer."""
        entry = self._entries.get(int(batch["producer_id"]))
        if entry is None:
            return False
        if entry.last_offset is not None:
            return bool(batch["last_offset"] == entry.last_offset)
        is_control = batch["attributes"] & CONTROL != 0
        return bool(is_control and batch["producer_epoch"] == entry.producer_epoch)


class Kept(NamedTuple):
    """Records that a cleaning has left, and their batches before and after."""

    records: Records  # as they were before
    before: Batches
    after: Batches
    aborted: BoolArray  # before, to its readers


class Overdue:
    """Collects the records of one log that had to go."""

    def __init__(
        self,
        before: Side,
        bounds: RemovalBounds,
        clock: LogClock,
        latest: LatestOffsets,
        place_of: Callable[[np.void], tuple[str, int]],
    ) -> None:
        """latest: of each key, below the end of the cleaning. place_of: where a batch is now."""
        self._bounds, self._latest, self._place_of = bounds, latest, place_of
        self._complete_to = bounds.complete_to or 0
        self._as_of_ms = clock.complete_as_of_ms
        self._dirty_from = max(first_dirty_offset(before), bounds.log_start_offset)
        bases = {before.log_start_offset, *(s.base_offset for s in before.listing.segments)}
        self._begins_with_segment = self._dirty_from in bases
        known = before.producers
        if self._as_of_ms is not None and self._as_of_ms < clock.as_of_ms:
            known = before.loaded(self._as_of_ms)  # more than now
        self._last_batches = LastBatches(known.entries)
        self._has_transactions = False
        self._findings: list[Finding] = []

    def note(self, batches: Batches) -> None:
        """Meet batches of the log before. To be called with all of them before any is checked."""
        self._has_transactions |= bool((batches["attributes"] & TRANSACTIONAL).any())

    def check(self, kept: Kept) -> None:
        """Look at records that are left."""
        if self._bounds.is_cut_short:
            return
        for row, reason in islice(self._reasons(kept), self._left()):
            offset = int(kept.records.offsets[row])
            self._find(kept.after[row], offset, f"a record {reason}")

    def check_batches(self, after: Batches) -> None:
        """Check batches that are left; an empty one is kept for its producer's sake alone.

        The clock of the cleaning decides which producers a broker knew. The batch at the end of the
        cleaned range always stays (C-10.5).
        """
        if self._bounds.is_cut_short or self._as_of_ms is None:
            return
        is_empty = (after["records_count"] == 0) & (after["magic"] == MAGIC)
        is_empty &= after["last_offset"] + 1 < self._complete_to
        unneeded = (batch for batch in after[is_empty] if not self._last_batches.has(batch))
        for batch in islice(unneeded, self._left()):
            what = "an empty batch that is not the last of its producer"
            self._find(batch, int(batch["base_offset"]), what)

    def _left(self) -> int:
        return MAX_FINDINGS + 1 - len(self._findings)

    def _find(self, batch: np.void, offset: int, what: str) -> None:
        problem = f"offset {offset}: {what} is still there"
        self._findings.append(difference(*self._place_of(batch), problem))

    def findings(self, is_disputed: bool) -> list[Finding]:
        """What had to go; is_disputed: its `.txnindex` and markers disagreed before."""
        return [] if is_disputed else self._findings

    def _reasons(self, kept: Kept) -> Iterator[tuple[int, str]]:
        """Rows of records, in their order, and the first reason that holds."""
        records = kept.records
        is_data = kept.before["attributes"] & CONTROL == 0
        in_map = is_data & (records.offsets < self._complete_to)
        has_key = records.kinds & HAS_KEY != 0
        latest = self._latest.of(records.keys)
        superseded = in_map & has_key & (latest > records.offsets) & (latest >= self._dirty_from)
        is_aborted = is_data & kept.aborted
        if self._bounds.may_go_on:
            superseded &= latest < self._complete_to
            is_aborted &= records.offsets < self._complete_to
        if self._has_transactions and not self._begins_with_segment:
            superseded[:] = False  # Kafka may miss markers: then not all keys are in its map
        reasons = (
            ("of an aborted transaction", is_aborted),
            ("without a key", in_map & ~has_key),
            ("superseded by a later record of its key", superseded),
            ("that is a tombstone past its delete horizon", in_map & self._is_expired(kept)),
        )
        first = np.select([holds for _, holds in reasons], range(len(reasons)), -1)
        for row in np.flatnonzero(first >= 0).tolist():
            yield row, reasons[first[row]][0]

    def _is_expired(self, kept: Kept) -> BoolArray:
        if self._as_of_ms is None:  # the cleaning may have been before the horizon
            return np.zeros(len(kept.before), np.bool_)
        has_horizon = kept.before["attributes"] & DELETE_HORIZON != 0
        is_reached = kept.before["base_timestamp"] <= self._as_of_ms
        is_tombstone = kept.records.kinds & TOMBSTONE != 0
        expired: BoolArray = (
            has_horizon & (kept.before["magic"] == MAGIC) & is_reached & is_tombstone
        )
        return expired


def first_dirty_offset(before: Side) -> int:
    """Return the offset from which the cleaning has taken keys into its map."""
    start, first = before.log_start_offset, before.cleaned_to
    return first if first is not None and start <= first <= before.log_end_offset else start
