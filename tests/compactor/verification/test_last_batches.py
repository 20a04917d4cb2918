"""The last batch of a producer stays though it is empty: cases of compaction C-10.4 by hand."""

import numpy as np
import pytest

from compactor.verification.overdue import LastBatches
from compactor.verification.reader_log import BATCH
from storage.formats.producer_snapshot import ProducerEntry

WITH_DATA = ProducerEntry(7, 2, 5, 40, 3, 1000, None, None)  # its last data batch ended at 40
WITH_MARKER = ProducerEntry(8, 3, None, None, 0, 1000, 0, None)  # only a marker in this epoch
LAST = LastBatches({7: WITH_DATA, 8: WITH_MARKER})
DATA, MARKER = 0x10, 0x30


def batch(producer_id: int, epoch: int, last_offset: int, attributes: int) -> np.void:
    made = np.zeros(1, BATCH)
    made["producer_id"], made["producer_epoch"] = producer_id, epoch
    made["last_offset"], made["attributes"] = last_offset, attributes
    found: np.void = made[0]
    return found


@pytest.mark.parametrize(
    ("made", "is_last"),
    [
        (batch(7, 2, 40, DATA), True),
        (batch(7, 1, 40, DATA), True),  # known by the offset alone
        (batch(7, 2, 41, DATA), False),
        (batch(7, 2, 39, DATA), False),
        (batch(7, 2, 41, MARKER), False),  # where there was data its marker says nothing
        (batch(8, 3, 12, MARKER), True),
        (batch(8, 2, 12, MARKER), False),  # of an earlier epoch
        (batch(8, 3, 12, DATA), False),
        (batch(9, 3, 12, MARKER), False),  # nobody knows it
        (batch(-1, -1, 40, 0), False),
    ],
)
def test_the_last_of_its_producer(made: np.void, is_last: bool) -> None:
    assert LAST.has(made) is is_last
