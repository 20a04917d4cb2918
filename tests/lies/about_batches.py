"""Lies about the batches of a cleaned segment, told before it is read back: their checksums fit.

They are what a kernel would write that has a mistake, or a machine whose memory has: a record too
few or too many, another value, another field of a header.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from storage.codecs.compression import Codec, compress
from tests.lies.about_records import (
    HOUR_MS,
    ONE_RECORD,
    Change,
    all_before,
    flipped,
    is_v2,
    of_record,
    with_records,
)
from tests.lies.lie import Known, Lie, Place, one_of
from tests.support.reference_batch import (
    CODEC_BITS,
    CONTROL,
    HEADER,
    HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    decode,
    encode,
    encode_parts,
)
from tests.support.reference_batch import ReferenceBatch as Batch


def batch_lies() -> Iterator[Lie]:
    for name, change in ONE_BATCH.items():
        yield Lie(name, Place.LOG, _of_one(change))
    for name, of_change in ONE_RECORD.items():
        yield Lie(name, Place.LOG, _of_one(of_record(of_change)))
    for name, tell in ALL_BATCHES.items():
        yield Lie(name, Place.LOG, tell)


def raw_of(batch: Batch) -> bytes:
    """The bytes of a batch, in the codec that it names."""
    payload, codec = encode(batch)[HEADER.size :], Codec(batch.attributes & CODEC_BITS)
    return encode_parts(batch, compress(codec, payload) if payload else payload)


def _of_one(
    change: Change,
) -> Callable[[Sequence[bytes], random.Random, Known], list[bytes] | None]:
    """The batches of a segment, of which one is changed that can be."""

    def tell(batches: Sequence[bytes], chance: random.Random, known: Known) -> list[bytes] | None:
        for row in chance.sample(range(len(batches)), len(batches)):
            if not is_v2(batches[row]):
                continue
            changed = change(decode(batches[row]), chance, known)
            if changed is not None and (raw := raw_of(changed)) != batches[row]:
                return [*batches[:row], raw, *batches[row + 1 :]]
        return None

    return tell


# one batch


def _record_dropped(batch: Batch, chance: random.Random, _: Known) -> Batch | None:
    if batch.is_control or not batch.records:
        return None
    row = chance.randrange(len(batch.records))
    return with_records(batch, (*batch.records[:row], *batch.records[row + 1 :]))


def _record_twice(batch: Batch, chance: random.Random, _: Known) -> Batch | None:
    if not batch.records:
        return None
    row = chance.randrange(len(batch.records))
    return with_records(batch, (*batch.records[: row + 1], *batch.records[row:]))


def _record_copied(batch: Batch, chance: random.Random, _: Known) -> Batch | None:
    """To an offset of the batch that has none."""
    taken = {record.offset for record in batch.records}
    free = [o for o in range(batch.base_offset, batch.last_offset + 1) if o not in taken]
    if batch.is_control or not batch.records or not free:
        return None
    copy = replace(chance.choice(batch.records), offset=chance.choice(free))
    return with_records(batch, sorted((*batch.records, copy), key=lambda record: record.offset))


def _record_moved(batch: Batch, chance: random.Random, _: Known) -> Batch | None:
    taken = {record.offset for record in batch.records}
    free = [o for o in range(batch.base_offset, batch.last_offset + 1) if o not in taken]
    if batch.is_control or not batch.records or not free:
        return None
    row = chance.randrange(len(batch.records))
    moved = replace(batch.records[row], offset=chance.choice(free))
    others = (*batch.records[:row], *batch.records[row + 1 :])
    return with_records(batch, sorted((*others, moved), key=lambda record: record.offset))


def _records_swapped(batch: Batch, chance: random.Random, _: Known) -> Batch | None:
    """Their contents; the offsets stay."""
    if batch.is_control or len(batch.records) < 2:
        return None
    one, other = sorted(chance.sample(range(len(batch.records)), 2))
    records = list(batch.records)
    records[one] = replace(batch.records[other], offset=batch.records[one].offset)
    records[other] = replace(batch.records[one], offset=batch.records[other].offset)
    return with_records(batch, records)


def _superseded_kept(batch: Batch, chance: random.Random, known: Known) -> Batch | None:
    """A record of it that has gone is there again."""
    kept = {record.offset for record in batch.records}
    gone = [
        record
        for raw in all_before(known)
        if (found := decode(raw)).base_offset == batch.base_offset
        for record in found.records
        if record.offset not in kept
    ]
    if batch.is_control or not gone:
        return None
    records = sorted((*batch.records, chance.choice(gone)), key=lambda record: record.offset)
    return with_records(batch, records)


def _horizon(batch: Batch, shift_ms: int) -> Batch | None:
    if not batch.attributes & HORIZON or not 0 <= batch.base_timestamp + shift_ms < 2**63:
        return None
    return replace(batch, base_timestamp=batch.base_timestamp + shift_ms)


def _horizon_lost(batch: Batch, *_: object) -> Batch | None:
    if not batch.attributes & HORIZON:
        return None
    base = batch.records[0].timestamp if batch.records else -1
    return replace(batch, attributes=batch.attributes & ~HORIZON, base_timestamp=base)


def _horizon_given(batch: Batch, chance: random.Random, _: Known) -> Batch | None:
    if batch.attributes & HORIZON or not batch.records:
        return None
    horizon_ms = chance.choice((0, 1, 11_000, 2**40))
    return replace(batch, attributes=batch.attributes | HORIZON, base_timestamp=horizon_ms)


def _marker_changed(batch: Batch, *_: object) -> Batch | None:
    if not batch.is_control or not batch.records:
        return None
    marker = batch.records[0]
    key = b"\0\0\0\1" if marker.key == b"\0\0\0\0" else b"\0\0\0\0"
    return replace(batch, records=(replace(marker, key=key),))


def _coordinator_changed(batch: Batch, chance: random.Random, _: Known) -> Batch | None:
    if not batch.is_control or not batch.records:
        return None
    value = flipped(batch.records[0].value, chance)
    return replace(batch, records=(replace(batch.records[0], value=value),))


def _field(name: str, by: int) -> Change:
    def changed(batch: Batch, *_: object) -> Batch | None:
        value = getattr(batch, name) + by
        return replace(batch, **{name: value}) if value >= -1 else None

    return changed


def _bit(bit: int) -> Change:
    return lambda batch, *_: replace(batch, attributes=batch.attributes ^ bit)


def _other_codec(batch: Batch, chance: random.Random, _: Known) -> Batch | None:
    if not batch.records:
        return None
    own = batch.attributes & CODEC_BITS
    codec = chance.choice([c for c in range(5) if c != own])
    return replace(batch, attributes=batch.attributes & ~CODEC_BITS | codec)


def _base_time_moved(batch: Batch, *_: object) -> Batch | None:
    if batch.attributes & HORIZON or not batch.records:
        return None
    return replace(batch, base_timestamp=batch.base_timestamp - 1)


ONE_BATCH: dict[str, Change] = {
    "a record is dropped": _record_dropped,
    "a record stands twice": _record_twice,
    "a record is copied to a free offset": _record_copied,
    "a record has another offset": _record_moved,
    "two records are exchanged": _records_swapped,
    "a record that had to go stays": _superseded_kept,
    "a delete horizon is an hour early": lambda b, *_: _horizon(b, -HOUR_MS),
    "a delete horizon is a millisecond early": lambda b, *_: _horizon(b, -1),
    "a delete horizon is an hour late": lambda b, *_: _horizon(b, HOUR_MS),
    "a delete horizon is lost": _horizon_lost,
    "a delete horizon without a reason": _horizon_given,
    "a marker is of the other kind": _marker_changed,
    "a marker is of another coordinator": _coordinator_changed,
    "the largest timestamp is too large": _field("max_timestamp", 1),
    "the largest timestamp is too small": _field("max_timestamp", -1),
    "the base timestamp is another": _base_time_moved,
    "a base offset is too small": _field("base_offset", -1),
    "a last offset is too large": _field("last_offset", 1),
    "a last offset is too small": _field("last_offset", -1),
    "a leader epoch": _field("leader_epoch", 1),
    "a producer id": _field("producer_id", 1),
    "a producer epoch": _field("producer_epoch", 1),
    "a sequence number": _field("base_sequence", 1),
    "a batch is of a transaction, or no longer": _bit(TRANSACTIONAL),
    "a batch is a control batch, or no longer": _bit(CONTROL),
    "a batch has log append time, or no longer": _bit(LOG_APPEND_TIME),
    "an attribute that nobody knows": _bit(0x80),
    "another codec": _other_codec,
}

# all of a segment


def _dropped(wanted: Callable[[Batch], bool]) -> Callable[..., list[bytes] | None]:
    def tell(batches: Sequence[bytes], chance: random.Random, _: Known) -> list[bytes] | None:
        rows = [r for r, raw in enumerate(batches) if is_v2(raw) and wanted(decode(raw))]
        row = one_of(rows, chance)
        return [*batches[:row], *batches[row + 1 :]]

    return tell


def _tail_lost(batches: Sequence[bytes], chance: random.Random, _: Known) -> list[bytes] | None:
    return list(batches[: -chance.randint(1, len(batches))]) if batches else None


def _exchanged(batches: Sequence[bytes], chance: random.Random, _: Known) -> list[bytes] | None:
    if len(batches) < 2:
        return None
    row = chance.randrange(len(batches) - 1)
    return [*batches[:row], batches[row + 1], batches[row], *batches[row + 2 :]]


def _twice(batches: Sequence[bytes], chance: random.Random, _: Known) -> list[bytes] | None:
    row = one_of(range(len(batches)), chance)
    return [*batches[: row + 1], *batches[row:]]


def _as_before(batches: Sequence[bytes], chance: random.Random, known: Known) -> list[bytes] | None:
    """One of them with all that it held."""
    before = {decode(raw, with_records=False).base_offset: raw for raw in all_before(known)}
    rows = [
        row
        for row, raw in enumerate(batches)
        if is_v2(raw) and before.get(decode(raw, with_records=False).base_offset, raw) != raw
    ]
    row = one_of(rows, chance)
    own = before[decode(batches[row], with_records=False).base_offset]
    return [*batches[:row], own, *batches[row + 1 :]]


def _put_back(batches: Sequence[bytes], chance: random.Random, known: Known) -> list[bytes] | None:
    """One that has gone is there again, where it stood."""
    heads = [decode(raw, with_records=False) for raw in batches if is_v2(raw)]
    if len(heads) != len(batches) or not heads:
        return None
    there = {head.base_offset for head in heads}
    first, last = heads[0].base_offset, heads[-1].last_offset
    gone = [
        (head.base_offset, raw)
        for raw in all_before(known)
        if (head := decode(raw, with_records=False)).base_offset not in there
        and first < head.base_offset < last
    ]
    if not gone:
        return None
    base_offset, raw = chance.choice(gone)
    at = sum(head.base_offset < base_offset for head in heads)
    return [*batches[:at], raw, *batches[at:]]


def _split(batches: Sequence[bytes], chance: random.Random, _: Known) -> list[bytes] | None:
    """A batch becomes two, with the records that it had."""
    for row in chance.sample(range(len(batches)), len(batches)):
        if not is_v2(batches[row]):
            continue
        batch = decode(batches[row])
        if len(batch.records) > 1 and not batch.is_control:
            second = batch.records[1].offset
            halves = (
                replace(with_records(batch, batch.records[:1]), last_offset=second - 1),
                replace(with_records(batch, batch.records[1:]), base_offset=second),
            )
            return [*batches[:row], *map(raw_of, halves), *batches[row + 1 :]]
    return None


def _bit_of_a_batch(
    batches: Sequence[bytes], chance: random.Random, _: Known
) -> list[bytes] | None:
    """Without a checksum that fits."""
    row = one_of(range(len(batches)), chance)
    raw = bytearray(batches[row])
    raw[chance.randrange(17, len(raw))] ^= 1 << chance.randrange(8)
    return [*batches[:row], bytes(raw), *batches[row + 1 :]]


ALL_BATCHES: dict[str, Callable[..., list[bytes] | None]] = {
    "a batch of records is dropped": _dropped(lambda b: bool(b.records) and not b.is_control),
    "an empty batch is dropped": _dropped(lambda b: not b.records),
    "a marker is dropped": _dropped(lambda b: b.is_control and bool(b.records)),
    "the last batches are lost": _tail_lost,
    "two batches are exchanged": _exchanged,
    "a batch stands twice": _twice,
    "a batch is as it was before": _as_before,
    "a batch that had to go stays": _put_back,
    "a batch is cut into two": _split,
    "a bit of a batch, and the checksum does not fit": _bit_of_a_batch,
}
