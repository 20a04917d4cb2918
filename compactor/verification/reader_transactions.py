"""The batches that a reader takes for aborted, by `.txnindex` and by markers.

A consumer of committed records goes by the `.txnindex` files; the markers in the log are the truth.
Both from the batches in the order of the log; nothing is shared with the bookkeeping of cleaning.
Source: Kafka, UnifiedLog.collectAbortedTransactions, CompletedFetch.nextFetchedRecord; F-6, F-11.5.
"""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from compactor.verification.reader_log import Batches
from storage.formats.batch_header import CONTROL, TRANSACTIONAL
from storage.formats.control_record import ControlType
from storage.formats.txn_index import AbortedTxn

BoolArray = NDArray[np.bool_]


class ConsumerView:
    """What a consumer that reads only committed records leaves out, fetching segment by segment."""

    def __init__(
        self,
        indexes: Sequence[Sequence[AbortedTxn]],
        ends: Sequence[int],
        log_start_offset: int,
    ) -> None:
        """indexes: the entries of each segment's `.txnindex`; ends: where the segments end."""
        self._indexes, self._ends, self._log_start_offset = indexes, ends, log_start_offset
        self._segment = -1
        self._begin = log_start_offset
        self._ahead: list[AbortedTxn] = []  # by falling first offset
        self._aborted: set[int] = set()  # producers

    def of(self, batches: Batches) -> BoolArray:
        """Whether each batch is aborted. To be called with all batches, in their order."""
        aborted = np.zeros(len(batches), np.bool_)
        for row in np.flatnonzero(batches["attributes"] & (TRANSACTIONAL | CONTROL)).tolist():
            batch = batches[row]
            if batch["segment"] != self._segment:
                self._fetch(int(batch["segment"]))
            while self._ahead and self._ahead[-1].first_offset <= batch["last_offset"]:
                self._aborted.add(self._ahead.pop().producer_id)
            producer_id = int(batch["producer_id"])
            if batch["attributes"] & CONTROL:
                if batch["marker"] == ControlType.ABORT:
                    self._aborted.discard(producer_id)
            else:
                aborted[row] = producer_id in self._aborted
        return aborted

    def _fetch(self, segment: int) -> None:
        """Ask for a whole segment: aborted transactions from its index on, as far as they go."""
        begin = self._ends[segment - 1] if segment else 0
        begin, end = max(begin, self._log_start_offset), self._ends[segment]
        self._segment, self._aborted = segment, set()
        found = []
        for txn in (t for index in self._indexes[segment:] for t in index):
            if txn.last_offset >= begin and txn.first_offset < end:
                found.append(txn)
            if txn.last_stable_offset >= end:
                break
        self._ahead = sorted(found, key=lambda txn: txn.first_offset, reverse=True)


class MarkerView:
    """What the markers of a log say: ranges of aborted batches, and transactions without an end."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}  # producer id -> first offset
        self._aborted: dict[int, list[tuple[int, int]]] = {}  # producer id -> first, marker offset

    def data(self, producer_id: int, base_offset: int) -> None:
        """Meet a transactional batch."""
        self._open.setdefault(producer_id, base_offset)

    def marker(self, producer_id: int, offset: int, kind: int) -> None:
        """Meet a control batch of a producer."""
        if kind not in (ControlType.ABORT, ControlType.COMMIT):
            return
        first_offset = self._open.pop(producer_id, None)
        if kind == ControlType.ABORT and first_offset is not None:
            self._aborted.setdefault(producer_id, []).append((first_offset, offset))

    def read(self, batches: Batches) -> None:
        """Meet batches."""
        for row in np.flatnonzero(batches["attributes"] & (TRANSACTIONAL | CONTROL)).tolist():
            batch = batches[row]
            producer_id, offset = int(batch["producer_id"]), int(batch["base_offset"])
            if batch["attributes"] & CONTROL:
                self.marker(producer_id, offset, int(batch["marker"]))
            else:
                self.data(producer_id, offset)

    def of(self, batches: Batches) -> BoolArray:
        """Whether each batch is aborted. To be called when all batches have been met."""
        aborted = np.zeros(len(batches), np.bool_)
        is_data = batches["attributes"] & (TRANSACTIONAL | CONTROL) == TRANSACTIONAL
        for row in np.flatnonzero(is_data).tolist():
            ranges = self._aborted.get(int(batches[row]["producer_id"]), [])
            offset = int(batches[row]["base_offset"])
            at = bisect_right(ranges, (offset, 2**63)) - 1
            aborted[row] = at >= 0 and offset < ranges[at][1]
        return aborted
