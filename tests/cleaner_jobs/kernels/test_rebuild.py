"""Batches that kernels write anew, against the reference cleaner's, over batches by chance."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from crc32c import crc32c

from cleaner_jobs.kernels.kept_batches import COPY, DROP, EMPTY, REBUILD, REBUILD_WITH_HORIZON
from cleaner_jobs.kernels.rebuild import (
    GROWTH_BYTES_PER_RECORD,
    NOT_CANONICAL,
    RESULT_COLUMNS,
    Decisions,
    HorizonDecisions,
    RecordSpan,
    SourceBuffers,
    has_horizon_after,
    kept_span,
    lacks_producer_state,
    rebuild_payloads,
    rebuild_records,
    rewrite_batches,
)
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    BASE_TIMESTAMP,
    BATCH_COLUMNS,
    KEEP,
    LEGACY,
    OK,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    SLACK_BYTES,
    SUPERSEDED,
    TOMBSTONE,
    ByteArray,
)
from tests.cleaner_jobs.kernels.framed import NOTHING, Framed, framed, padded
from tests.support.made_log import batch, record
from tests.support.random_batches import random_batches
from tests.support.reference_batch import (
    CONTROL,
    CRC_STARTS_AT,
    HEADER,
    HORIZON,
    ReferenceBatch,
    ReferenceRecord,
    encode,
)
from tests.support.reference_cleaner import emptied, rebuilt

HORIZON_MS = 77_777
ROUNDS, BATCHES = 40, 12
ACTIONS = (COPY, DROP, EMPTY, REBUILD, REBUILD_WITH_HORIZON)


class Case(NamedTuple):
    """A batch, what is decided of it, and which of its records stay."""

    made: ReferenceBatch
    action: int
    states: list[int]

    @property
    def kept(self) -> list[ReferenceRecord]:
        pairs = zip(self.made.records, self.states, strict=True)
        return [found for found, state in pairs if state in (KEEP, TOMBSTONE)]

    @property
    def given_ms(self) -> int | None:
        return HORIZON_MS if self.action == REBUILD_WITH_HORIZON else self.made.delete_horizon_ms

    def written(self) -> bytes:
        """By the reference."""
        if self.action == COPY:
            return encode(self.made)
        if self.action == DROP:
            return b""
        if self.action == EMPTY:
            return encode(emptied(self.made))
        return encode(rebuilt(self.made, self.kept, self.given_ms))

    def is_refused(self) -> bool:
        """C-11.14."""
        made = self.made
        if self.action not in (REBUILD, REBUILD_WITH_HORIZON) or made.producer_id < 0:
            return False
        return made.producer_epoch == -1 or (made.base_sequence < 0 and not made.is_control)


def random_cases(seed: int) -> list[Case]:
    chance = Random(seed)
    return [_case(chance, made) for made in random_batches(chance, BATCHES)]


def _case(chance: Random, made: ReferenceBatch) -> Case:
    action = chance.choice(ACTIONS)
    states = [chance.choice((KEEP, TOMBSTONE, SUPERSEDED)) for _ in made.records]
    if action == COPY:
        states = [KEEP] * len(states)
    elif action in (DROP, EMPTY):
        states = [SUPERSEDED] * len(states)
    else:
        states[chance.randrange(len(states))] = KEEP
    return Case(made, action, states)


def states_of(cases: Sequence[Case]) -> ByteArray:
    return np.array([state for case in cases for state in case.states], np.uint8)


def room_for(found: Framed, cases: Sequence[Case]) -> ByteArray:
    records = sum(len(case.states) for case in cases)
    return np.zeros(found.end + GROWTH_BYTES_PER_RECORD * records + SLACK_BYTES, np.uint8)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_written_batches_are_those_of_the_reference(seed: int) -> None:
    """C-11.9 to C-11.14. The checksums, which the kernel leaves out, are put in here."""
    cases = random_cases(seed)
    found = framed([encode(case.made) for case in cases])
    out, spans = room_for(found, cases), np.zeros((len(cases), 2), np.int64)
    decisions = Decisions(
        np.array([case.action for case in cases], np.uint8),
        np.array([len(case.kept) for case in cases], np.int32),
        states_of(cases),
    )
    end, sealed, wrong, refused = rewrite_batches(
        SourceBuffers(found.buffer, 0, NOTHING, NOTHING),
        found.rows,
        np.zeros((len(cases), 2), np.int64),
        decisions,
        HORIZON_MS,
        out,
        spans,
    )
    assert wrong == -1
    written = bytearray(out[:end].tobytes())
    for start, stop in spans[:sealed].tolist():
        checksum = crc32c(bytes(written[start + CRC_STARTS_AT : stop]))
        written[start + CRC_STARTS_AT - 4 : start + CRC_STARTS_AT] = checksum.to_bytes(4, "big")
    assert written == b"".join(case.written() for case in cases)
    assert sealed == sum(case.action not in (COPY, DROP) for case in cases)
    assert refused == sum(case.is_refused() for case in cases)


@pytest.mark.parametrize("is_legacy", [False, True], ids=["v2", "legacy"])
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_payloads_are_those_of_the_reference(seed: int, is_legacy: bool) -> None:
    """Those of an upgraded batch count from their first kept record on (C-11.12)."""
    cases = [case for case in random_cases(seed) if case.action not in (COPY, DROP, EMPTY)]
    if is_legacy:
        cases = [case._replace(made=_as_upgraded(case.made)) for case in cases]
    found = framed([encode(case.made) for case in cases])
    bounds = np.array(
        [[at + HEADER.size, at + size] for at, size in found.rows[:, :2].tolist()], np.int64
    )
    if is_legacy:
        found.rows[:, ATTRIBUTES] |= LEGACY
    counts = [len(case.states) for case in cases]
    decisions = HorizonDecisions(
        states_of(cases),
        np.cumsum([0, *counts], dtype=np.int64)[:-1],
        np.array([HORIZON_MS if c.action == REBUILD_WITH_HORIZON else -1 for c in cases]),
        True,
    )
    out, results = room_for(found, cases), np.zeros((len(cases), RESULT_COLUMNS), np.int64)
    rebuild_payloads(found.buffer, bounds, found.rows, decisions, out, results)
    for case, result in zip(cases, results.tolist(), strict=True):
        made = case.made
        if is_legacy:
            first, last = case.kept[0].offset, case.kept[-1].offset
            made = replace(made, base_offset=first, last_offset=last)
        expected = rebuilt(made, case.kept, case.given_ms)
        start, end, base, latest, code, refused, base_offset, last_offset = result
        assert code == OK
        assert out[start:end].tobytes() == encode(expected)[HEADER.size :]
        assert (base, latest) == (expected.base_timestamp, expected.max_timestamp)
        assert (base_offset, last_offset) == (made.base_offset, made.last_offset)
        assert bool(refused) == case.is_refused()


def _as_upgraded(made: ReferenceBatch) -> ReferenceBatch:
    """No batch that was upgraded has a horizon; its records have times of their own."""
    return replace(made, attributes=made.attributes & ~HORIZON)


PLAIN = batch(record(5, b"a", b"1"), record(7, b"b", b"2"), record(8, b"c", b"3"))


def rebuild(raw: ByteArray, end: int, states: list[int], out_bytes: int) -> tuple[Any, ByteArray]:
    """Of the records of PLAIN, with marks behind the room that the kernel is given."""
    row = framed([encode(PLAIN)]).rows[0]
    out = np.full(out_bytes + SLACK_BYTES, 0xAA, np.uint8)
    given = np.array(states, np.uint8)
    records = RecordSpan(raw, HEADER.size, end)
    return rebuild_records(records, row, given, -1, 0, out[:out_bytes], 0), out[out_bytes:]


def test_records_cut_short_anywhere_are_not_written() -> None:
    raw = encode(PLAIN)
    found, _ = rebuild(padded(raw), len(raw), [KEEP, SUPERSEDED, KEEP], 200)
    assert found[3] == OK
    for end in range(HEADER.size, len(raw)):
        found, _ = rebuild(padded(raw), end, [KEEP, SUPERSEDED, KEEP], 200)
        assert found[3] == NOT_CANONICAL, end


def test_no_byte_is_written_beyond_what_there_is_room_for() -> None:
    raw, codes = encode(PLAIN), []
    for room in range(60):
        found, behind = rebuild(padded(raw), len(raw), [KEEP, KEEP, KEEP], room)
        codes.append(found[3])
        assert set(behind.tolist()) == {0xAA}, room
    needed = len(raw) - HEADER.size
    assert codes[:needed] == [NOT_CANONICAL] * needed
    assert codes[-1] == OK


def test_states_of_fewer_records_than_the_batch_claims_are_not_gone_by() -> None:
    raw = encode(PLAIN)
    found, _ = rebuild(padded(raw), len(raw), [KEEP, KEEP], 200)
    assert found[3] == NOT_CANONICAL


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([KEEP, KEEP, KEEP], (5, 8)),
        ([SUPERSEDED, KEEP, KEEP], (7, 8)),
        ([SUPERSEDED, KEEP, SUPERSEDED], (7, 7)),
        ([KEEP, SUPERSEDED, SUPERSEDED], (5, 5)),
        ([SUPERSEDED, SUPERSEDED, SUPERSEDED], (5, 8)),  # of the batch itself
    ],
)
def test_the_span_of_the_kept_records(states: list[int], expected: tuple[int, int]) -> None:
    found = framed([encode(PLAIN)])
    records = RecordSpan(found.buffer, HEADER.size, found.end)
    assert kept_span(records, found.rows[0], np.array(states, np.uint8)) == expected


@pytest.mark.parametrize(
    ("producer_id", "epoch", "sequence", "attributes", "expected"),
    [
        (-1, -1, -1, 0, False),
        (0, 0, 0, 0, False),
        (0, 0, -1, 0, True),
        (0, 0, -1, CONTROL, False),
        (0, -1, 0, 0, True),
        (0, -1, -1, CONTROL, True),
    ],
)
def test_which_batches_kafka_refuses_to_build(
    producer_id: int, epoch: int, sequence: int, attributes: int, expected: bool
) -> None:
    """C-11.14."""
    row = np.zeros(BATCH_COLUMNS, np.int64)
    row[PRODUCER_ID], row[PRODUCER_EPOCH] = producer_id, epoch
    row[BASE_OFFSET], row[ATTRIBUTES] = 4, attributes
    row[BASE_SEQUENCE] = sequence
    assert lacks_producer_state(row) is expected


HEADER_HORIZON = 0x40


@pytest.mark.parametrize(
    ("attributes", "base_timestamp", "given_ms", "expected"),
    [
        (0, 5, -1, False),
        (0, 5, 0, True),
        (0, 5, 9, True),
        (HEADER_HORIZON, 0, -1, True),
        (HEADER_HORIZON, -1, -1, False),  # E-36
        (HEADER_HORIZON, -1, 9, True),
    ],
)
def test_which_rebuilt_batch_has_a_horizon(
    attributes: int, base_timestamp: int, given_ms: int, expected: bool
) -> None:
    row = np.zeros(BATCH_COLUMNS, np.int64)
    row[ATTRIBUTES], row[BASE_TIMESTAMP] = attributes, base_timestamp
    assert has_horizon_after(row, given_ms) is expected
