"""A log handed out range by range of offsets, so that two logs can be gone through side by side."""

from typing import NamedTuple

import numpy as np

from compactor.verification.reader_log import BATCH, Batches, Chunk, LogReader, Records
from compactor.verification.reader_transactions import BoolArray, ConsumerView

END = 2**63 - 1  # behind every log


class Window(NamedTuple):
    """What one side has of a range of offsets."""

    batches: Batches  # those that begin in it
    all_batches: Batches  # to which rows of records refer
    first: int  # row among them of the first that begins in it
    aborted: BoolArray  # of all_batches, as a consumer is told
    records: Records

    @property
    def own_aborted(self) -> BoolArray:
        """Of the batches that begin in it."""
        return self.aborted[self.first : self.first + len(self.batches)]


class Cursor:
    """One side, handed out range by range."""

    def __init__(self, reader: LogReader, view: ConsumerView) -> None:
        self._chunks, self._view = reader.chunks(), view
        self._chunk: Chunk | None = None
        self._aborted: BoolArray = np.zeros(0, np.bool_)
        self._record = self._batch = 0
        self.covered_to = 0

    def fill(self, taken_to: int) -> None:
        """Have a chunk that goes on behind what was taken; at the end, one that never ends."""
        if self.covered_to > taken_to:
            return
        self._chunk = next(self._chunks, None)
        self._record = self._batch = 0
        self.covered_to = END
        if self._chunk is not None:
            self._aborted = self._view.of(self._chunk.batches)
            self.covered_to = int(self._chunk.batches["last_offset"][-1]) + 1

    def take(self, end: int) -> Window | None:
        """All below an offset that is not taken yet; None at the end of the log."""
        if self._chunk is None:
            return None
        batches, records = self._chunk
        record = int(np.searchsorted(records.offsets, end))
        batch = int(np.searchsorted(batches["base_offset"], end))
        window = Window(
            batches[self._batch : batch],
            batches,
            self._batch,
            self._aborted,
            records.of(slice(self._record, record)),
        )
        self._record, self._batch = record, batch
        return window


def _nothing() -> Window:
    empty = np.zeros(0, np.int64)
    hashes = np.zeros((0, 2), np.uint64)
    records = Records(empty, empty, hashes, hashes, np.zeros(0, np.uint8), empty)
    return Window(np.zeros(0, BATCH), np.zeros(0, BATCH), 0, np.zeros(0, np.bool_), records)


NOTHING = _nothing()
