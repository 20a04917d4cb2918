"""Written records against those of their source: the reference's are found the same, others not."""

from dataclasses import replace
from random import Random
from typing import NamedTuple

import numpy as np
import pytest

from cleaner_jobs.kernels.same_records import (
    A_CONTENT,
    A_TIMESTAMP,
    AN_OFFSET,
    BASE,
    COMPARED,
    EXPECTED_COLUMNS,
    FIRST,
    ITS_HORIZON,
    ITS_RECORDS,
    KEPT,
    LAST,
    LATEST,
    SAME,
    compare_records,
)
from storage.formats.batch_columns import KEEP, SUPERSEDED, TOMBSTONE, ByteArray, Int64Array
from tests.cleaner_jobs.kernels.framed import padded
from tests.support.made_log import batch, record
from tests.support.random_batches import random_batches
from tests.support.reference_batch import (
    CONTROL,
    HEADER,
    HORIZON,
    LOG_APPEND_TIME,
    ReferenceBatch,
    ReferenceRecord,
    encode,
)
from tests.support.reference_cleaner import rebuilt

HORIZON_MS = 77_777


class Decisions(NamedTuple):
    states: ByteArray
    horizon_ms: int  # that the batch is given, or -1
    gives_horizons: bool


def compared(
    source: ReferenceBatch, decisions: Decisions, written: bytes
) -> tuple[int, Int64Array]:
    """written: the bytes of the whole batch; its header is not looked at here."""
    raw = encode(source)
    expected = np.zeros(EXPECTED_COLUMNS, np.int64)
    found = compare_records(
        (padded(raw), HEADER.size, len(raw)),
        (source.base_offset, source.base_timestamp, source.max_timestamp, source.attributes),
        decisions,
        (padded(written), HEADER.size, len(written)),
        expected,
    )
    return found, expected


def random_decisions(chance: Random, made: ReferenceBatch) -> Decisions:
    """As a round decides: a batch with a tombstone that stays has a horizon, or is given one."""
    states = [chance.choice((KEEP, SUPERSEDED)) for _ in made.records]
    states[chance.randrange(len(states))] = KEEP
    kept = [r for r, state in zip(made.records, states, strict=True) if state == KEEP]
    needs = any(r.value is None for r in kept) and made.delete_horizon_ms is None
    needs = needs and not made.is_control
    return Decisions(np.array(states, np.uint8), HORIZON_MS if needs else -1, True)


def kept_of(made: ReferenceBatch, states: ByteArray) -> list[ReferenceRecord]:
    return [r for r, state in zip(made.records, states, strict=True) if state in (KEEP, TOMBSTONE)]


def by_reference(made: ReferenceBatch, decisions: Decisions) -> ReferenceBatch:
    given_ms = decisions.horizon_ms if decisions.horizon_ms >= 0 else made.delete_horizon_ms
    return rebuilt(made, kept_of(made, decisions.states), given_ms)


@pytest.mark.parametrize("seed", range(30))
def test_what_the_reference_writes_is_the_same(seed: int) -> None:
    chance = Random(seed)
    for made in random_batches(chance, 10):
        decisions = random_decisions(chance, made)
        written = by_reference(made, decisions)
        found, expected = compared(made, decisions, encode(written))
        assert found == SAME
        assert expected[KEPT] == len(written.records)
        assert expected[BASE] == written.base_timestamp
        assert expected[LATEST] == written.max_timestamp
        assert expected[FIRST] == written.records[0].offset
        assert expected[LAST] == written.records[-1].offset
        assert expected[COMPARED] == 1


@pytest.mark.parametrize("seed", range(4))
def test_no_bit_of_what_is_written_may_be_another(seed: int) -> None:
    chance = Random(seed)
    (made,) = random_batches(chance, 1)
    decisions = random_decisions(chance, made)
    written = encode(by_reference(made, decisions))
    for bit in range(8 * HEADER.size, 8 * len(written)):
        other = bytearray(written)
        other[bit // 8] ^= 1 << bit % 8
        assert compared(made, decisions, bytes(other))[0] != SAME, bit


SOURCE = batch(
    ReferenceRecord(10, 100, b"a", b"1"),
    ReferenceRecord(11, 300, b"b", b"2", ((b"h", b"x"),)),
    ReferenceRecord(15, 200, b"c", b"3"),
)
STATES = np.array([SUPERSEDED, KEEP, KEEP], np.uint8)
PLAIN = Decisions(STATES, -1, True)
WRITTEN = by_reference(SOURCE, PLAIN)
TWO, THREE = WRITTEN.records


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ((TWO, THREE), SAME),
        ((replace(TWO, timestamp=301), THREE), A_TIMESTAMP),
        ((TWO, replace(THREE, timestamp=199)), A_TIMESTAMP),
        ((replace(TWO, offset=12), THREE), AN_OFFSET),
        ((TWO, replace(THREE, offset=14)), AN_OFFSET),
        ((replace(TWO, key=b"B"), THREE), A_CONTENT),
        ((TWO, replace(THREE, value=b"4")), A_CONTENT),
        ((replace(TWO, headers=((b"h", b"y"),)), THREE), A_CONTENT),
        ((replace(TWO, headers=()), THREE), ITS_RECORDS),
        ((TWO, replace(THREE, value=b"33")), ITS_RECORDS),
        ((TWO,), ITS_RECORDS),
        ((TWO, THREE, replace(THREE, offset=16)), ITS_RECORDS),
        ((THREE, TWO), A_TIMESTAMP),
    ],
)
def test_what_differs_is_named(records: tuple[ReferenceRecord, ...], expected: int) -> None:
    """Base timestamp and base offset stay those of the batch: the deltas tell."""
    assert compared(SOURCE, PLAIN, encode(replace(WRITTEN, records=records)))[0] == expected


def test_a_record_more_or_less_than_was_decided_is_found() -> None:
    for states in ([KEEP, KEEP, KEEP], [SUPERSEDED, SUPERSEDED, KEEP], [SUPERSEDED, KEEP]):
        decisions = PLAIN._replace(states=np.array(states, np.uint8))
        assert compared(SOURCE, decisions, encode(WRITTEN))[0] != SAME


TOMBSTONES = batch(record(1, b"a", b"1"), record(2, b"b", None))
OF_BOTH = np.array([KEEP, TOMBSTONE], np.uint8)


@pytest.mark.parametrize(
    ("attributes", "horizon_ms", "gives_horizons", "expected"),
    [
        (0, HORIZON_MS, True, SAME),
        (0, -1, True, ITS_HORIZON),  # the tombstone would never go
        (0, -1, False, SAME),  # the round gives none: its horizon would pass 2^63 (C-11.8)
        (HORIZON, -1, True, SAME),
        (HORIZON, HORIZON_MS, True, ITS_HORIZON),  # it has one, and would be given another
        (CONTROL, -1, True, SAME),
        (CONTROL, HORIZON_MS, True, SAME),  # of a marker its transaction decides (C-8.5)
    ],
)
def test_a_horizon_is_given_where_a_tombstone_without_one_stays(
    attributes: int, horizon_ms: int, gives_horizons: bool, expected: int
) -> None:
    made = replace(TOMBSTONES, attributes=attributes)
    decisions = Decisions(OF_BOTH, horizon_ms, gives_horizons)
    assert compared(made, decisions, encode(by_reference(made, decisions)))[0] == expected


def test_a_batch_without_a_tombstone_is_given_no_horizon() -> None:
    made = batch(record(1, b"a", b"1"), record(2, b"b", b""))
    decisions = Decisions(np.array([SUPERSEDED, KEEP], np.uint8), HORIZON_MS, True)
    assert compared(made, decisions, encode(by_reference(made, decisions)))[0] == ITS_HORIZON


def test_with_log_append_time_every_record_has_the_time_of_the_batch() -> None:
    made = replace(SOURCE, attributes=LOG_APPEND_TIME, max_timestamp=900)
    stamped = [replace(r, timestamp=900) for r in made.records]
    expected = rebuilt(made, stamped[1:], None)
    found, columns = compared(made, PLAIN, encode(expected))
    assert (found, columns[BASE], columns[LATEST]) == (SAME, 900, 900)
    unstamped = rebuilt(made, list(made.records[1:]), None)
    assert compared(made, PLAIN, encode(unstamped))[0] == A_TIMESTAMP
