"""Headers of batches that are written anew; most of their fields are held by test_rebuild."""

import numpy as np
import pytest

from cleaner_jobs.kernels.headers import has_horizon_after
from storage.formats.batch_columns import ATTRIBUTES, BASE_TIMESTAMP, BATCH_COLUMNS

HORIZON = 0x40


@pytest.mark.parametrize(
    ("attributes", "base_timestamp", "given_ms", "expected"),
    [
        (0, 5, -1, False),
        (0, 5, 0, True),
        (0, 5, 9, True),
        (HORIZON, 0, -1, True),
        (HORIZON, -1, -1, False),  # E-36
        (HORIZON, -1, 9, True),
    ],
)
def test_which_rebuilt_batch_has_a_horizon(
    attributes: int, base_timestamp: int, given_ms: int, expected: bool
) -> None:
    row = np.zeros(BATCH_COLUMNS, np.int64)
    row[ATTRIBUTES], row[BASE_TIMESTAMP] = attributes, base_timestamp
    assert has_horizon_after(row, given_ms) is expected
