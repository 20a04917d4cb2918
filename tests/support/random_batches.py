"""Batches by chance, of every kind that a cleaning meets: for kernels against their slow twins."""

from random import Random

from tests.support.reference_batch import (
    CONTROL,
    HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Header,
    ReferenceBatch,
    ReferenceRecord,
    decode,
    encode,
)

KINDS = (0, 0, TRANSACTIONAL, CONTROL | TRANSACTIONAL)
TIMES_MS = (0, 1, 70, 9_000, 3_000_000, 2**34, 2**41)  # deltas of one byte up to six
GAPS = (0, 0, 0, 1, 70, 9_000)  # of offsets


def random_batch(chance: Random, base_offset: int) -> ReferenceBatch:
    """As it is read: the records of one with log append time have the time of the batch."""
    offset, records = base_offset + chance.choice(GAPS), []
    for _ in range(chance.randint(1, 6)):
        records.append(_record(chance, offset))
        offset += 1 + chance.choice(GAPS)
    attributes = chance.choice(KINDS) | chance.choice((0, 0, LOG_APPEND_TIME, HORIZON))
    made = ReferenceBatch(
        base_offset=base_offset,
        last_offset=offset - 1,
        leader_epoch=chance.randint(-1, 9),
        attributes=attributes,
        base_timestamp=chance.choice((-5, 0, 4_000, records[0].timestamp)),
        max_timestamp=max(record.timestamp for record in records) + chance.choice((0, 0, 5)),
        producer_id=chance.choice((-1, 3, 2**50)),
        producer_epoch=chance.choice((-1, 0, 7)),
        base_sequence=chance.choice((-1, 0, 2**31 - 1)),
        records=tuple(records),
    )
    return decode(encode(made))


def random_batches(chance: Random, count: int) -> list[ReferenceBatch]:
    """In the order of their offsets."""
    batches: list[ReferenceBatch] = []
    for _ in range(count):
        after = batches[-1].last_offset + 1 if batches else chance.randrange(2**40)
        batches.append(random_batch(chance, after))
    return batches


def _record(chance: Random, offset: int) -> ReferenceRecord:
    return ReferenceRecord(
        offset,
        timestamp=chance.choice(TIMES_MS) + chance.randint(0, 3),
        key=_bytes(chance),
        value=_bytes(chance),
        headers=tuple(_header(chance) for _ in range(chance.choice((0, 0, 1, 3)))),
    )


def _header(chance: Random) -> Header:
    return chance.choice((b"", b"a", b"trace")), _bytes(chance)


def _bytes(chance: Random) -> bytes | None:
    length = chance.choice((None, 0, 1, 9, 63, 64, 200))
    return None if length is None else chance.randbytes(length)
