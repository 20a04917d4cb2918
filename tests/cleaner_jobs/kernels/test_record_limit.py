"""V-4, with sizes counted by hand."""

import numpy as np
import pytest

from cleaner_jobs.kernels.scan_runs import first_above
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BATCH_COLUMNS,
    LEGACY,
    MAGIC_ZERO,
    RECORDS_COUNT,
    TXN_FLAGS,
    UNREAD,
)

GZIP = 1
# length 9: attributes, timestamp, offset, key of one byte, value of two, no header
SMALL = bytes([18, 0, 0, 0, 2, ord("k"), 4, 1, 2, 0])
# length 8: no key, value of two bytes; 8 as a record, 14 + 2 as a message of v0, 22 + 2 of v1
KEYLESS = bytes([16, 0, 0, 2, 1, 4, 1, 2, 0])


def above(payload: bytes, attributes: int, limit: int, flags: int = 0) -> tuple[int, int, int]:
    rows = np.zeros((1, BATCH_COLUMNS), np.int64)
    rows[0, [ATTRIBUTES, RECORDS_COUNT, TXN_FLAGS]] = attributes, 2, flags
    buffer = np.frombuffer(payload + bytes(64), np.uint8)
    return first_above(buffer, np.array([[0, len(payload)]]), rows, limit)


@pytest.mark.parametrize(
    ("attributes", "keyless", "small"),
    [(GZIP, 8, 9), (GZIP | LEGACY | MAGIC_ZERO, 16, 17), (GZIP | LEGACY, 24, 25)],
)
def test_a_record_may_be_as_large_as_the_limit(attributes: int, keyless: int, small: int) -> None:
    both = KEYLESS + SMALL
    assert above(both, attributes, small) == (-1, 0, 0)
    assert above(both, attributes, small - 1) == (0, 1, small)
    assert above(both, attributes, keyless - 1) == (0, 0, keyless)


def test_what_is_not_compressed_or_not_read_has_no_limit() -> None:
    assert above(SMALL + SMALL, 0, 1) == (-1, 0, 0)
    assert above(SMALL + SMALL, GZIP, 1, UNREAD) == (-1, 0, 0)
