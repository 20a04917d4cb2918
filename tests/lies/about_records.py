"""Lies about one record of a batch: another key, value, time or header, or an older version."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tests.lies.lie import Known
from tests.support.reference_batch import CODEC_BITS, HORIZON, LOG_APPEND_TIME, decode
from tests.support.reference_batch import ReferenceBatch as Batch
from tests.support.reference_batch import ReferenceRecord as Record

Change = Callable[[Batch, random.Random, Known], Batch | None]
HOUR_MS = 3_600_000


def is_v2(raw: bytes) -> bool:
    return raw[16] == 2


def of_record(change: Callable[[Record, random.Random, Known], Record | None]) -> Change:
    """A batch of data of which one record is changed."""

    def changed(batch: Batch, chance: random.Random, known: Known) -> Batch | None:
        if batch.is_control:
            return None
        for row in chance.sample(range(len(batch.records)), len(batch.records)):
            record = change(batch.records[row], chance, known)
            if record is not None and record != batch.records[row]:
                return with_records(
                    batch, (*batch.records[:row], record, *batch.records[row + 1 :])
                )
        return None

    return changed


def with_records(batch: Batch, records: Sequence[Record]) -> Batch:
    """As Kafka's builder would write them: a lie that has the largest and the base time right."""
    if not records:
        return replace(batch, attributes=batch.attributes & ~(CODEC_BITS | HORIZON), records=(),
                       base_timestamp=-1)  # fmt: skip
    base, latest = batch.base_timestamp, batch.max_timestamp
    if not batch.attributes & HORIZON:
        base = records[0].timestamp
    if not batch.attributes & LOG_APPEND_TIME:
        latest = max(-1, *(record.timestamp for record in records))
    return replace(batch, records=tuple(records), base_timestamp=base, max_timestamp=latest)


def all_before(known: Known) -> Iterator[bytes]:
    return (raw for batches in known.segments.values() for raw in batches if is_v2(raw))


def flipped(data: bytes | None, chance: random.Random) -> bytes | None:
    """One bit of it."""
    if not data:
        return None
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def _value_flipped(record: Record, chance: random.Random, _: Known) -> Record | None:
    value = flipped(record.value, chance)
    return None if value is None else replace(record, value=value)


def _key_flipped(record: Record, chance: random.Random, _: Known) -> Record | None:
    key = flipped(record.key, chance)
    return None if key is None else replace(record, key=key)


def _header_changed(record: Record, chance: random.Random, _: Known) -> Record | None:
    if not record.headers:
        return None
    at = chance.randrange(len(record.headers))
    key, value = record.headers[at]
    other = (key, flipped(value, chance) or b"x")
    return replace(record, headers=(*record.headers[:at], other, *record.headers[at + 1 :]))


def _older_version(record: Record, chance: random.Random, known: Known) -> Record | None:
    """The value, time and headers that the key had before."""
    older = [
        other
        for raw in all_before(known)
        for other in decode(raw).records
        if not decode(raw, with_records=False).is_control
        and other.key == record.key
        and other.offset < record.offset
    ]
    if not older or record.key is None:
        return None
    return replace(chance.choice(older), offset=record.offset)


ONE_RECORD: dict[str, Callable[[Record, random.Random, Known], Record | None]] = {
    "a bit of a value": _value_flipped,
    "a bit of a key": _key_flipped,
    "a header is another": _header_changed,
    "a header is lost": lambda r, *_: replace(r, headers=r.headers[1:]) if r.headers else None,
    "a header is new": lambda r, *_: replace(r, headers=(*r.headers, (b"new", b"1"))),
    "a value is cut": lambda r, *_: replace(r, value=r.value[:-1]) if r.value else None,
    "a value is longer": lambda r, *_: replace(r, value=r.value + b"\0") if r.value else None,
    "a value is null": lambda r, *_: replace(r, value=None) if r.value is not None else None,
    "a tombstone has a value": lambda r, *_: replace(r, value=b"") if r.value is None else None,
    "a key is null": lambda r, *_: replace(r, key=None),
    "a record is a millisecond late": lambda r, *_: replace(r, timestamp=r.timestamp + 1),
    "a record is an hour early": lambda r, *_: replace(r, timestamp=r.timestamp - HOUR_MS),
    "an older version of a key": _older_version,
}
