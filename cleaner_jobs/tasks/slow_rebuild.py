"""Rebuilds, field by field, a batch that is not in the form in which Kafka writes it.

It has over-long varints, odd lengths or header keys beyond ASCII (compaction C-11.11 b). The result
is decoded again, and so is its source: an object in memory has no checksum.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.rebuild import lacks_producer_state
from cleaner_jobs.tasks.rewrite_check import miswritten
from storage.errors import CorruptFileError
from storage.formats.batch_columns import ATTRIBUTES, LEGACY, POSITION, REASON_MASK, SIZE
from storage.formats.batch_header import CONTROL, DELETE_HORIZON, NO_TIMESTAMP
from storage.formats.batch_windows import Window
from storage.formats.java_text import through_java
from storage.formats.record import Record
from storage.formats.record_batch import (
    BatchHeader,
    BatchOptions,
    decode_header,
    decode_records,
    encode_batch,
)


class BatchByField(NamedTuple):
    """A batch with its checksum."""

    batch: bytes
    refused: bool  # by Kafka's builder (C-11.14)
    expected: tuple[int, ...]  # in its header, in the columns of same_records


def rebuild_by_field(
    window: Window, row: int, states: NDArray[np.uint8], given_ms: int | None
) -> BatchByField:
    """Rebuild one batch of a window from its decoded records.

    states: of its records. given_ms: the horizon that it is given, negative where the round gives
    none; None: it keeps what it has.

    Raise CorruptFileError for what the kernels left, since it does not parse; MiswrittenError where
    what came out is not what stands in the window.
    """
    facts = window.rows[row]
    position = int(facts[POSITION])
    if facts[ATTRIBUTES] & LEGACY:  # upgraded by us, so all else is as Kafka writes it
        problem = "the offsets of its messages do not ascend"
        raise CorruptFileError(window.path, position, problem)
    header, kept = _kept(window, row, states)
    horizon_ms = header.delete_horizon_ms if given_ms is None else given_ms
    options = BatchOptions(
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        partition_leader_epoch=header.partition_leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        log_append_time_ms=header.max_timestamp if header.is_log_append_time else None,
        delete_horizon_ms=horizon_ms if horizon_ms is not None and horizon_ms >= 0 else None,
    )
    batch = encode_batch(kept, header.codec, options)
    predates = any(record.timestamp < NO_TIMESTAMP for record in kept)
    refused = predates or bool(lacks_producer_state(facts))
    return BatchByField(batch, refused, _compared(window, row, batch, (states, given_ms)))


def _kept(window: Window, row: int, states: NDArray[np.uint8]) -> tuple[BatchHeader, list[Record]]:
    """Return what the batch says of itself, and its records that stay."""
    position = int(window.rows[row, POSITION])
    at = position - window.file_position
    batch = window.buffer.data[at : at + int(window.rows[row, SIZE])]
    header = decode_header(batch, position, window.path)
    records = decode_records(batch, header, window.path, position)
    kept = [
        record._replace(headers=tuple((through_java(key), v) for key, v in record.headers))
        for record, state in zip(records, states, strict=True)
        if not state & REASON_MASK
    ]
    return header, kept


def _compared(
    window: Window, row: int, batch: bytes, decisions: tuple[NDArray[np.uint8], int | None]
) -> tuple[int, ...]:
    """Compare a written batch with its source; return what is to stand in its header."""
    states, given_ms = decisions
    source, kept = _kept(window, row, states)
    position = int(window.rows[row, POSITION])
    try:
        written = decode_records(batch, decode_header(batch, 0, window.path), window.path, position)
    except CorruptFileError as error:
        raise miswritten(window, row, error.problem) from error
    if written != kept:
        raise miswritten(window, row, "a record")
    had_horizon = source.attributes & DELETE_HORIZON != 0
    has_tombstone = any(record.value is None for record in kept)
    if not source.attributes & CONTROL and has_tombstone and not had_horizon and given_ms is None:
        raise miswritten(window, row, "its delete horizon")
    times = [record.timestamp for record in kept]
    horizon_ms = source.delete_horizon_ms if given_ms is None else given_ms
    base = times[0] if horizon_ms is None or horizon_ms < 0 else horizon_ms
    latest = source.max_timestamp if source.is_log_append_time else max(NO_TIMESTAMP, *times)
    return len(kept), base, latest, kept[0].offset, kept[-1].offset, 1
