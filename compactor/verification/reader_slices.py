"""A log handed out range by range of offsets, so that two logs can be gone through side by side."""

from typing import NamedTuple

import numpy as np

from compactor.verification.reader_kernels import Int64Array
from compactor.verification.reader_log import BATCH, Batches, Chunk, LogReader, Records
from compactor.verification.reader_transactions import BoolArray, ConsumerView
from storage.formats.batch_header import CONTROL, TRANSACTIONAL
from storage.formats.control_record import ControlType

END = 2**63 - 1  # after every log


class OffsetSlice(NamedTuple):
    """What one side has of a range of offsets."""

    batches: Batches  # those that begin in it
    all_batches: Batches  # to which rows of records refer
    first: int  # row among them of the first that begins in it
    aborted: BoolArray  # of all_batches, as a consumer sees them
    records: Records

    @property
    def own_aborted(self) -> BoolArray:
        """Which batches that begin in it are aborted."""
        return self.aborted[self.first : self.first + len(self.batches)]

    def below(self, offset: int) -> "OffsetSlice":
        """What of it is below an offset at which a batch begins."""
        batches = int(np.searchsorted(self.batches["base_offset"], offset))
        records = int(np.searchsorted(self.records.offsets, offset))
        if batches == len(self.batches) and records == len(self.records.offsets):
            return self
        return self._replace(
            batches=self.batches[:batches], records=self.records.of(slice(0, records))
        )


class Cursor:
    """One side, handed out range by range."""

    def __init__(self, reader: LogReader, view: ConsumerView) -> None:
        self._chunks, self._view = reader.chunks(), view
        self._chunk: Chunk | None = None
        self._aborted: BoolArray = np.zeros(0, np.bool_)
        self._record = self._batch = 0
        self.covered_to = 0

    def fill(self, taken_to: int) -> None:
        """Have a chunk that goes on after what was taken; at the end, one that never ends."""
        if self.covered_to > taken_to:
            return
        self._chunk = next(self._chunks, None)
        self._record = self._batch = 0
        self.covered_to = END
        if self._chunk is not None:
            self._aborted = self._view.of(self._chunk.batches)
            self.covered_to = int(self._chunk.batches["last_offset"][-1]) + 1

    def take(self, end: int) -> OffsetSlice | None:
        """All below an offset that is not taken yet; None at the end of the log."""
        if self._chunk is None:
            return None
        batches, records = self._chunk
        record = int(np.searchsorted(records.offsets, end))
        batch = int(np.searchsorted(batches["base_offset"], end))
        taken = OffsetSlice(
            batches[self._batch : batch],
            batches,
            self._batch,
            self._aborted,
            records.of(slice(self._record, record)),
        )
        self._record, self._batch = record, batch
        return taken


def _nothing() -> OffsetSlice:
    empty = np.zeros(0, np.int64)
    hashes = np.zeros((0, 2), np.uint64)
    records = Records(
        offsets=empty,
        timestamps=empty,
        keys=hashes,
        contents=hashes,
        kinds=np.zeros(0, np.uint8),
        batches=empty,
    )
    return OffsetSlice(np.zeros(0, BATCH), np.zeros(0, BATCH), 0, np.zeros(0, np.bool_), records)


NOTHING = _nothing()


class DataLeft:
    """Which data of a transaction a cleaning has left before its marker."""

    def __init__(self) -> None:
        # producer id, whether hidden from readers of committed records -> last such batch after
        self._data: dict[tuple[int, bool], int] = {}
        self._markers: dict[int, int] = {}  # producer id -> its last marker before

    def before_markers(self, old: OffsetSlice, new: OffsetSlice) -> Int64Array:
        """Return where the last data before each control batch of a slice stands; -1: none.

        To be called with all slices, in their order.
        """
        is_data = new.batches["attributes"] & (TRANSACTIONAL | CONTROL) == TRANSACTIONAL
        hidden = new.own_aborted[is_data].tolist()
        data = [
            (int(batch["base_offset"]), (int(batch["producer_id"]), is_hidden))
            for batch, is_hidden in zip(new.batches[is_data], hidden, strict=True)
        ]
        left = np.full(len(old.batches), -1, np.int64)
        at = 0
        for row in np.flatnonzero(old.batches["attributes"] & CONTROL).tolist():
            batch = old.batches[row]
            offset, producer_id = int(batch["base_offset"]), int(batch["producer_id"])
            while at < len(data) and data[at][0] < offset:
                self._data[data[at][1]] = data[at][0]
                at += 1
            is_abort = bool(batch["marker"] == ControlType.ABORT)
            found = self._data.get((producer_id, is_abort), -1)
            if found > self._markers.get(producer_id, -1):
                left[row] = found
            self._markers[producer_id] = offset
        self._data.update((whose, offset) for offset, whose in data[at:])
        return left
