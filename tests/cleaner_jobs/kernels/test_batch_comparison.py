"""Whole written batches against their sources: the reference's are the same, no other header is."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest

from cleaner_jobs.kernels.batch_comparison import (
    A_CONTENT,
    A_TIMESTAMP,
    AN_OFFSET,
    BASE,
    COMPARED,
    EXPECTED_COLUMNS,
    FIRST,
    ITS_HEADER,
    ITS_HORIZON,
    ITS_RECORDS,
    ITS_SIZE,
    KEPT,
    LAST,
    LATEST,
    SAME,
    SourceHeader,
    compare_batches,
    compare_payloads,
    compare_records,
    sum_heads,
)
from cleaner_jobs.kernels.kept_batches import COPY, DROP, EMPTY, REBUILD, REBUILD_WITH_HORIZON
from cleaner_jobs.kernels.rebuild import (
    RESULT_COLUMNS,
    BatchRows,
    Decisions,
    HorizonDecisions,
    RecordSpan,
    SourceBuffers,
)
from storage.formats.batch_columns import KEEP, OK, SUPERSEDED, TOMBSTONE, ByteArray, Int64Array
from tests.cleaner_jobs.kernels.framed import NOTHING, framed, padded
from tests.support.made_log import batch, record
from tests.support.random_batches import random_batches
from tests.support.reference_batch import (
    CONTROL,
    CRC_STARTS_AT,
    HEADER,
    HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    ReferenceBatch,
    ReferenceRecord,
    encode,
    sum_of_heads,
)
from tests.support.reference_cleaner import emptied, rebuilt

HORIZON_MS = 77_777


RAWS = [encode(made) for made in random_batches(Random(1), 9)]


class TestSumOfHeads:
    def test_it_is_that_of_the_slow_twin(self) -> None:
        for count in range(len(RAWS) + 1):
            data = b"".join(RAWS[:count])
            total, batches, end = sum_heads(padded(data), 0, len(data))
            assert int(total) == sum_of_heads(RAWS[:count])
            assert (batches, end) == (count, len(data))

    def test_it_begins_where_it_is_told_to(self) -> None:
        data, first = b"".join(RAWS), len(RAWS[0])
        total, batches, _ = sum_heads(padded(data), first, len(data))
        assert (int(total), batches) == (sum_of_heads(RAWS[1:]), len(RAWS) - 1)

    def test_a_batch_that_is_cut_off_ends_it(self) -> None:
        data = b"".join(RAWS[:2])
        for end in range(len(RAWS[0]), len(data)):
            total, batches, at = sum_heads(padded(data), 0, end)
            assert (int(total), batches, at) == (sum_of_heads(RAWS[:1]), 1, len(RAWS[0]))

    @pytest.mark.parametrize("length", [-1, 0, CRC_STARTS_AT - 13, 2**31 - 1])
    def test_a_length_that_is_none_ends_it(self, length: int) -> None:
        raw = RAWS[0]
        other = raw[:8] + length.to_bytes(4, "big", signed=True) + raw[12:]
        assert sum_heads(padded(raw + other), 0, 2 * len(raw))[1:] == (1, len(raw))

    def test_every_bit_before_the_checksummed_bytes_counts(self) -> None:
        raw = RAWS[0]
        for bit in (*range(8 * 8), *range(12 * 8, 8 * CRC_STARTS_AT)):  # not those of the length
            other = bytearray(raw)
            other[bit // 8] ^= 1 << bit % 8
            assert int(sum_heads(padded(bytes(other)), 0, len(raw))[0]) != sum_of_heads([raw]), bit


def compared(
    sources: Sequence[ReferenceBatch], decisions: Any, written: bytes
) -> tuple[tuple[int, int], Any]:
    """decisions: an action, and states of its records, for each batch."""
    found = framed([encode(source) for source in sources])
    expected = np.zeros((len(sources), EXPECTED_COLUMNS), np.int64)
    result = compare_batches(
        SourceBuffers(found.buffer, 0, NOTHING, NOTHING),
        found.rows,
        Decisions(
            np.array([action for action, _ in decisions], np.uint8),
            np.zeros(len(sources), np.int32),  # not looked at
            np.array([state for _, states in decisions for state in states], np.uint8),
        ),
        HORIZON_MS,
        (padded(written), len(written)),
        expected,
    )
    return result, expected


COPIED = batch(record(1, b"a"), record(2, b"b"), leader_epoch=3)
REMADE = batch(
    record(5, b"a", b"1"),
    record(6, b"b", b"2"),
    leader_epoch=4,
    producer_id=9,
    producer_epoch=2,
    base_sequence=11,
    attributes=TRANSACTIONAL,
)
WITH_TOMBSTONE = batch(record(7, b"c", None), record(8, b"d", b"4"))
HEADED = batch(record(9, b"a", b"5"), producer_id=8, producer_epoch=1, base_sequence=0)
GONE = batch(record(10, b"a", b"6"))
SOURCES = (COPIED, REMADE, WITH_TOMBSTONE, HEADED, GONE)
DECISIONS = (
    (COPY, [KEEP, KEEP]),
    (REBUILD, [SUPERSEDED, KEEP]),
    (REBUILD_WITH_HORIZON, [TOMBSTONE, KEEP]),
    (EMPTY, [SUPERSEDED]),
    (DROP, [SUPERSEDED]),
)
WRITTEN = (
    COPIED,
    rebuilt(REMADE, list(REMADE.records[1:]), None),
    rebuilt(WITH_TOMBSTONE, list(WITH_TOMBSTONE.records), HORIZON_MS),
    emptied(HEADED),
)


def raws(written: Sequence[ReferenceBatch]) -> bytes:
    return b"".join(map(encode, written))


def test_what_the_reference_writes_is_the_same() -> None:
    found, expected = compared(SOURCES, DECISIONS, raws(WRITTEN))
    assert found == (-1, SAME)
    latest = [written.max_timestamp for written in WRITTEN[1:]]
    assert expected[1:4, LATEST].tolist() == latest


@pytest.mark.parametrize("number", [1, 2, 3], ids=["rebuilt", "with horizon", "emptied"])
@pytest.mark.parametrize(
    "change",
    [
        {"base_offset": 1, "last_offset": 1},
        {"last_offset": 1},
        {"leader_epoch": 1},
        {"attributes": HORIZON},
        {"attributes": CONTROL},
        {"base_timestamp": 1},
        {"max_timestamp": 1},
        {"producer_id": 1},
        {"producer_epoch": 1},
        {"base_sequence": 1},
    ],
    ids=lambda change: "+".join(change),
)
def test_no_field_of_a_header_may_be_another(number: int, change: dict[str, int]) -> None:
    """One bit more in it; the bytes of the records stay."""
    written = list(map(encode, WRITTEN))
    its = WRITTEN[number]
    other = replace(its, **{name: getattr(its, name) ^ bit for name, bit in change.items()})
    header = encode(replace(other, records=()))[: HEADER.size]
    fields = list(HEADER.unpack(header))
    fields[1], fields[-1] = len(written[number]) - 12, len(its.records)
    written[number] = HEADER.pack(*fields) + written[number][HEADER.size :]
    (where, difference), _ = compared(SOURCES, DECISIONS, b"".join(written))
    assert where == number
    assert difference != SAME


@pytest.mark.parametrize("count", [0, 2])
def test_the_number_of_records_may_not_be_another(count: int) -> None:
    written = list(map(encode, WRITTEN))
    written[1] = (
        written[1][: HEADER.size - 4] + count.to_bytes(4, "big") + written[1][HEADER.size :]
    )
    assert compared(SOURCES, DECISIONS, b"".join(written))[0] == (1, ITS_HEADER)


def test_a_copy_is_held_up_to_its_checksum() -> None:
    """What is under that is held by it, when the batch is read back."""
    raw = raws(WRITTEN)
    for at in range(CRC_STARTS_AT):
        other = raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]
        (where, difference), _ = compared(SOURCES, DECISIONS, other)
        assert (where, difference != SAME) == (0, True), at
    other = raw[:CRC_STARTS_AT] + b"\1" + raw[CRC_STARTS_AT + 1 :]
    assert compared(SOURCES, DECISIONS, other)[0] == (-1, SAME)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (WRITTEN[:3], (3, ITS_SIZE)),  # one is missing
        ((*WRITTEN, GONE), (4, ITS_SIZE)),  # one has come back
        ((COPIED, REMADE, *WRITTEN[2:]), (1, ITS_RECORDS)),  # with the record that was to go
        ((*WRITTEN[:3], HEADED), (3, ITS_SIZE)),
    ],
)
def test_batches_are_those_that_were_decided(
    written: Sequence[ReferenceBatch], expected: tuple[int, int]
) -> None:
    (where, difference), _ = compared(SOURCES, DECISIONS, raws(written))
    assert where == expected[0]
    assert difference == expected[1] or expected[1] == ITS_RECORDS


@pytest.mark.parametrize("seed", range(20))
def test_batches_by_chance(seed: int) -> None:
    chance = Random(seed)
    sources = random_batches(chance, 8)
    decisions, written = [], []
    for source in sources:
        source_kept = [chance.random() < 0.5 for _ in source.records]
        kept = [r for r, stays in zip(source.records, source_kept, strict=True) if stays]
        needs = any(r.value is None for r in kept) and source.delete_horizon_ms is None
        given_ms = HORIZON_MS if needs else source.delete_horizon_ms
        action = EMPTY if not kept else REBUILD_WITH_HORIZON if needs else REBUILD
        decisions.append((action, [KEEP if stays else SUPERSEDED for stays in source_kept]))
        written.append(rebuilt(source, kept, given_ms) if kept else emptied(source))
    assert compared(sources, decisions, raws(written))[0] == (-1, SAME)


def payloads_compared(results: list[list[int]], written: bytes) -> tuple[int, int]:
    """Of REMADE and GONE, as if they had been compressed; all of their records stay."""
    found = framed([encode(REMADE), encode(GONE)])
    bounds = [[at + HEADER.size, at + size] for at, size in found.rows[:, :2].tolist()]
    expected = np.zeros((2, EXPECTED_COLUMNS), np.int64)
    columns = np.zeros((2, RESULT_COLUMNS), np.int64)
    columns[:, : len(results[0])] = results
    return compare_payloads(
        BatchRows(found.buffer, 0, found.rows),
        (found.buffer, np.array(bounds, np.int64)),
        HorizonDecisions(
            np.array([KEEP] * 3, np.uint8), np.array([0, 2], np.int64), np.array([-1, -1]), True
        ),
        (padded(written), columns),
        expected,
    )


def test_payloads_are_compared_where_they_were_rebuilt() -> None:
    one, other = (encode(made)[HEADER.size :] for made in (REMADE, GONE))
    written, size = one + other, len(one)
    places = [[0, size, 0, 0, OK], [size, len(written), 0, 0, OK]]
    assert payloads_compared(places, written) == (-1, SAME)
    flipped = written[:-2] + bytes([written[-2] ^ 1]) + written[-1:]  # the value of the last
    assert payloads_compared(places, flipped) == (1, A_CONTENT)
    places[1][4] = OK + 1  # it is rebuilt by field, and compared there
    assert payloads_compared(places, flipped) == (-1, SAME)


RECORDS_HORIZON_MS = 77_777


class RecordDecisions(NamedTuple):
    states: ByteArray
    horizon_ms: int  # that the batch is given, or -1
    gives_horizons: bool


def compared_records(
    source: ReferenceBatch, decisions: RecordDecisions, written: bytes
) -> tuple[int, Int64Array]:
    """written: the bytes of the whole batch; its header is not looked at here."""
    raw = encode(source)
    expected = np.zeros(EXPECTED_COLUMNS, np.int64)
    found = compare_records(
        RecordSpan(padded(raw), HEADER.size, len(raw)),
        SourceHeader(
            source.base_offset, source.base_timestamp, source.max_timestamp, source.attributes
        ),
        *decisions,
        RecordSpan(padded(written), HEADER.size, len(written)),
        expected,
    )
    return found, expected


def random_decisions(chance: Random, made: ReferenceBatch) -> RecordDecisions:
    """As a round decides: a batch with a tombstone that stays has a horizon, or is given one."""
    states = [chance.choice((KEEP, SUPERSEDED)) for _ in made.records]
    states[chance.randrange(len(states))] = KEEP
    kept = [r for r, state in zip(made.records, states, strict=True) if state == KEEP]
    needs = any(r.value is None for r in kept) and made.delete_horizon_ms is None
    needs = needs and not made.is_control
    return RecordDecisions(np.array(states, np.uint8), RECORDS_HORIZON_MS if needs else -1, True)


def kept_of(made: ReferenceBatch, states: ByteArray) -> list[ReferenceRecord]:
    return [r for r, state in zip(made.records, states, strict=True) if state in (KEEP, TOMBSTONE)]


def by_reference(made: ReferenceBatch, decisions: RecordDecisions) -> ReferenceBatch:
    given_ms = decisions.horizon_ms if decisions.horizon_ms >= 0 else made.delete_horizon_ms
    return rebuilt(made, kept_of(made, decisions.states), given_ms)


@pytest.mark.parametrize("seed", range(30))
def test_records_that_the_reference_writes_are_the_same(seed: int) -> None:
    chance = Random(seed)
    for made in random_batches(chance, 10):
        decisions = random_decisions(chance, made)
        written = by_reference(made, decisions)
        found, expected = compared_records(made, decisions, encode(written))
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
        assert compared_records(made, decisions, bytes(other))[0] != SAME, bit


SOURCE = batch(
    ReferenceRecord(10, 100, b"a", b"1"),
    ReferenceRecord(11, 300, b"b", b"2", ((b"h", b"x"),)),
    ReferenceRecord(15, 200, b"c", b"3"),
)
STATES = np.array([SUPERSEDED, KEEP, KEEP], np.uint8)
PLAIN = RecordDecisions(STATES, -1, True)
WRITTEN_RECORDS = by_reference(SOURCE, PLAIN)
TWO, THREE = WRITTEN_RECORDS.records


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
    assert (
        compared_records(SOURCE, PLAIN, encode(replace(WRITTEN_RECORDS, records=records)))[0]
        == expected
    )


def test_a_record_more_or_less_than_was_decided_is_found() -> None:
    for states in ([KEEP, KEEP, KEEP], [SUPERSEDED, SUPERSEDED, KEEP], [SUPERSEDED, KEEP]):
        decisions = PLAIN._replace(states=np.array(states, np.uint8))
        assert compared_records(SOURCE, decisions, encode(WRITTEN_RECORDS))[0] != SAME


TOMBSTONES = batch(record(1, b"a", b"1"), record(2, b"b", None))
OF_BOTH = np.array([KEEP, TOMBSTONE], np.uint8)


@pytest.mark.parametrize(
    ("attributes", "horizon_ms", "gives_horizons", "expected"),
    [
        (0, RECORDS_HORIZON_MS, True, SAME),
        (0, -1, True, ITS_HORIZON),  # the tombstone would never go
        (0, -1, False, SAME),  # the round gives none: its horizon would pass 2^63 (C-11.8)
        (HORIZON, -1, True, SAME),
        (HORIZON, RECORDS_HORIZON_MS, True, ITS_HORIZON),  # it has one, and would be given another
        (CONTROL, -1, True, SAME),
        (CONTROL, RECORDS_HORIZON_MS, True, SAME),  # of a marker its transaction decides (C-8.5)
    ],
)
def test_a_horizon_is_given_where_a_tombstone_without_one_stays(
    attributes: int, horizon_ms: int, gives_horizons: bool, expected: int
) -> None:
    made = replace(TOMBSTONES, attributes=attributes)
    decisions = RecordDecisions(OF_BOTH, horizon_ms, gives_horizons)
    assert compared_records(made, decisions, encode(by_reference(made, decisions)))[0] == expected


def test_a_batch_without_a_tombstone_is_given_no_horizon() -> None:
    made = batch(record(1, b"a", b"1"), record(2, b"b", b""))
    decisions = RecordDecisions(np.array([SUPERSEDED, KEEP], np.uint8), RECORDS_HORIZON_MS, True)
    assert (
        compared_records(made, decisions, encode(by_reference(made, decisions)))[0] == ITS_HORIZON
    )


def test_with_log_append_time_every_record_has_the_time_of_the_batch() -> None:
    made = replace(SOURCE, attributes=LOG_APPEND_TIME, max_timestamp=900)
    stamped = [replace(r, timestamp=900) for r in made.records]
    expected = rebuilt(made, stamped[1:], None)
    found, columns = compared_records(made, PLAIN, encode(expected))
    assert (found, columns[BASE], columns[LATEST]) == (SAME, 900, 900)
    unstamped = rebuilt(made, list(made.records[1:]), None)
    assert compared_records(made, PLAIN, encode(unstamped))[0] == A_TIMESTAMP
