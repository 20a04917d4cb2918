"""Which batches a cleaning keeps for their producer's sake: its last, empty if need be.

They hold the sequence number, or the epoch, from which the producer goes on.
Rule: compaction C-10.4.
"""

from collections.abc import Mapping

import numpy as np

from storage.formats.batch_header import CONTROL
from storage.formats.producer_snapshot import ProducerEntry


class LastBatches:
    """Of the producers that a broker knows before the cleaning."""

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
