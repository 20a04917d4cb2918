"""States of records beside plain lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleaner_jobs.kernels.record_states import count_in_batches, drop_superseded
from storage.formats.batch_columns import (
    ABORTED,
    ATTRIBUTES,
    BATCH_COLUMNS,
    CONTROL_RECORD,
    EXPIRED,
    IN_MAP,
    KEEP,
    LEGACY,
    NULL_KEY,
    RECORDS_COUNT,
    SUPERSEDED,
    TOMBSTONE,
)

HORIZON = 0x40
REASON_BITS = 7
REASONS = [KEEP, SUPERSEDED, NULL_KEY, EXPIRED, ABORTED]
STATES = st.builds(
    lambda *bits: sum(bits),
    st.sampled_from(REASONS),
    st.sampled_from([0, TOMBSTONE]),
    st.sampled_from([0, IN_MAP, CONTROL_RECORD]),
)


@given(st.lists(STATES, min_size=1), st.data())
def test_a_verdict_gives_its_records_their_reason_and_no_others(
    before: list[int], data: st.DataObject
) -> None:
    ordinals = data.draw(st.lists(st.integers(0, len(before) - 1), unique=True))
    states = np.array(before, np.uint8)
    assert drop_superseded(states, np.array(sorted(ordinals), np.uint32))
    assert states.tolist() == [
        state - state % 8 + SUPERSEDED if i in ordinals else state for i, state in enumerate(before)
    ]


@pytest.mark.parametrize("ordinal", [3, 4, 2**31, 2**32 - 1])
def test_a_record_that_is_not_there_is_told(ordinal: int) -> None:
    states = np.zeros(3, np.uint8)
    assert not drop_superseded(states, np.array([0, ordinal], np.uint32))
    assert drop_superseded(states, np.array([0, 2], np.uint32))


@given(st.lists(st.tuples(st.sampled_from([0, HORIZON, LEGACY, 1]), st.lists(STATES))))
def test_what_is_counted_of_batches(batches: list[tuple[int, list[int]]]) -> None:
    rows = np.zeros((len(batches), BATCH_COLUMNS), np.int64)
    rows[:, ATTRIBUTES] = [attributes for attributes, _ in batches]
    rows[:, RECORDS_COUNT] = [len(states) for _, states in batches]
    states = np.array([state for _, of_batch in batches for state in of_batch], np.uint8)
    tombstones = [
        state
        for attributes, of_batch in batches
        for state in of_batch
        if attributes != HORIZON
        and state & TOMBSTONE
        and state & REASON_BITS in (KEEP, SUPERSEDED, EXPIRED)
    ]
    assert count_in_batches(rows, states) == (
        sum(not of_batch for _, of_batch in batches),
        sum(attributes == LEGACY for attributes, _ in batches),
        len(tombstones),
    )
