"""Kafka's cleaning of one log over plain lists, slow and obvious, for the kernels' tests.

Follows C-6 to C-13 for v2 logs without transactions, and shares no code with what it is
held against. Everything is in memory; nothing is compressed, so a rebuilt batch is given as values.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tests.support.reference_batch import (
    CODEC_BITS,
    CONTROL,
    HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    ReferenceBatch,
    ReferenceRecord,
)

INT64_MAX = 2**63 - 1
NO_TIMESTAMP = -1


class ActiveProducer(NamedTuple):
    """C-10.1: a producer that has not expired."""

    epoch: int
    last_data_offset: int | None


@dataclass(frozen=True)
class Round:
    """What one round of cleaning goes by."""

    first_dirty_offset: int
    first_uncleanable_offset: int  # exclusive
    now_ms: int
    delete_retention_ms: int
    active_producers: dict[int, ActiveProducer]


@dataclass
class Counts:
    """Records by what became of them."""

    kept: int = 0
    superseded: int = 0
    expired_tombstones: int = 0
    null_keys: int = 0


class Cleaned(NamedTuple):
    """A batch of the new segment: `batch` if copied byte for byte, else what is to be encoded."""

    batch: ReferenceBatch
    verbatim: bool


def clean(batches: Sequence[ReferenceBatch], by: Round) -> tuple[list[Cleaned], Counts]:
    """The batches of all segments below the bound, in order, as the round leaves them."""
    latest = offset_map(batches, by.first_dirty_offset)
    counts = Counts()
    cleaned = []
    for batch in batches:
        kept = [record for record in batch.records if _keeps(record, batch, latest, by, counts)]
        written = _written(batch, kept, by)
        if written is not None:
            cleaned.append(written)
    return cleaned, counts


def offset_map(batches: Iterable[ReferenceBatch], first_dirty_offset: int) -> dict[bytes, int]:
    """C-7.5: the last offset of every key of the dirty section."""
    latest = {}
    for batch in batches:
        for record in batch.records:
            if record.key is not None and record.offset >= first_dirty_offset:
                latest[record.key] = record.offset
    return latest


def _keeps(
    record: ReferenceRecord,
    batch: ReferenceBatch,
    latest: dict[bytes, int],
    by: Round,
    counts: Counts,
) -> bool:
    """C-11.2, C-11.3; the map is never full here, so all records are within it."""
    if record.key is None:
        counts.null_keys += 1
        return False
    if record.offset < latest.get(record.key, -1):
        counts.superseded += 1
        return False
    horizon_ms = batch.delete_horizon_ms
    if record.value is None and horizon_ms is not None and by.now_ms >= horizon_ms:
        counts.expired_tombstones += 1
        return False
    counts.kept += 1
    return True


def _written(batch: ReferenceBatch, kept: list[ReferenceRecord], by: Round) -> Cleaned | None:
    """C-11.6."""
    if not kept:
        return Cleaned(emptied(batch), verbatim=False) if _stays_when_empty(batch, by) else None
    has_tombstone = any(record.value is None for record in kept)
    needs_horizon = has_tombstone and batch.delete_horizon_ms is None
    if len(kept) == len(batch.records) and not needs_horizon:
        return Cleaned(batch, verbatim=True)
    horizon_ms = batch.delete_horizon_ms
    if needs_horizon:
        horizon_ms = by.now_ms + by.delete_retention_ms
        if horizon_ms > INT64_MAX:  # C-11.8: a long of Java's turns negative
            horizon_ms = None
    return Cleaned(rebuilt(batch, kept, horizon_ms), verbatim=False)


def _stays_when_empty(batch: ReferenceBatch, by: Round) -> bool:
    """C-10.4, C-10.5."""
    producer = by.active_producers.get(batch.producer_id)
    is_last_of_producer = producer is not None and producer.last_data_offset == batch.last_offset
    return is_last_of_producer or batch.last_offset + 1 == by.first_uncleanable_offset


def emptied(batch: ReferenceBatch) -> ReferenceBatch:
    """C-11.9."""
    attributes = batch.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL)
    return replace(batch, attributes=attributes, base_timestamp=NO_TIMESTAMP, records=())


def rebuilt(
    batch: ReferenceBatch, kept: list[ReferenceRecord], horizon_ms: int | None
) -> ReferenceBatch:
    """C-11.10, C-11.11."""
    if horizon_ms is not None and horizon_ms < 0:  # E-36
        horizon_ms = None
    timestamps = [record.timestamp for record in kept]
    has_append_time = bool(batch.attributes & LOG_APPEND_TIME)
    attributes = batch.attributes & (CODEC_BITS | LOG_APPEND_TIME | TRANSACTIONAL | CONTROL)
    return replace(
        batch,
        attributes=attributes | (HORIZON if horizon_ms is not None else 0),
        base_timestamp=timestamps[0] if horizon_ms is None else horizon_ms,
        max_timestamp=batch.max_timestamp if has_append_time else max(timestamps),
        records=tuple(map(_with_sound_headers, kept)),
    )


def _with_sound_headers(record: ReferenceRecord) -> ReferenceRecord:
    """Header keys go through Java's strings: what is not UTF-8 becomes U+FFFD."""
    headers = tuple((key.decode(errors="replace").encode(), value) for key, value in record.headers)
    return replace(record, headers=headers)
