"""Batches of transactions as reference batches, and `.txnindex` files by hand from their layout."""

from collections.abc import Sequence
from dataclasses import replace

from tests.support.made_log import batch, record
from tests.support.reference_batch import (
    CONTROL,
    HORIZON,
    TRANSACTIONAL,
    ReferenceBatch,
    encode,
)

ABORT_KEY, COMMIT_KEY, LEADER_CHANGE_KEY = b"\0\0\0\0", b"\0\0\0\1", b"\0\0\0\2"
TXN = TRANSACTIONAL
MARKER = TRANSACTIONAL | CONTROL


def of_producer(made: ReferenceBatch, producer_id: int, attributes: int = TXN) -> ReferenceBatch:
    sequence = -1 if attributes & CONTROL else 0
    return replace(
        made,
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )


def marker(offset: int, producer_id: int, key: bytes, horizon_ms: int | None = None) -> bytes:
    made = of_producer(batch(record(offset, key, b"\0" * 6)), producer_id, MARKER)
    if horizon_ms is not None:
        made = replace(made, attributes=MARKER | HORIZON, base_timestamp=horizon_ms)
    return encode(made)


def index_entry(producer_id: int, first_offset: int, last_offset: int, stable_offset: int) -> bytes:
    """F-11.1: version 0, then four int64."""
    fields: Sequence[int] = (producer_id, first_offset, last_offset, stable_offset)
    return b"\0\0" + b"".join(field.to_bytes(8, "big") for field in fields)
