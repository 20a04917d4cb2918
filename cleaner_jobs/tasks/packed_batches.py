"""Compressed and legacy batches, rebuilt: filtered many at a time, compressed one by one.

The bytes of the payload are those of Kafka's own codec libraries at their default levels, whatever
level the batch came with (compaction C-11.11 d).
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.rebuild import (
    GROWTH_BYTES_PER_RECORD,
    PRESERVED_ATTRIBUTES,
    RESULT_COLUMNS,
    rebuild_payloads,
)
from cleaner_jobs.tasks.batch_window import Payloads, Window, payloads
from cleaner_jobs.tasks.worker_buffers import WorkerBuffers
from storage.codecs.compression import Codec, compress
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    BASE_TIMESTAMP,
    LAST_OFFSET,
    LEGACY,
    MAX_TIMESTAMP,
    OK,
    POSITION,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORDS_COUNT,
    SLACK_BYTES,
    Int64Array,
)
from storage.formats.batch_header import (
    BATCH_HEADER_BYTES,
    CODEC_MASK,
    DELETE_HORIZON,
    LEADER_EPOCH_AT,
    LEADER_EPOCH_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    MIN_BATCH_LENGTH,
    NO_LEADER_EPOCH,
)
from storage.kernels.crc32c import crc32c

HEAD = Struct(">qi4sbI")  # base offset, length, leader epoch as it stands, magic, checksum
TAIL = Struct(">hiqqqhii")  # what the checksum covers: attributes to records count
assert HEAD.size + TAIL.size == BATCH_HEADER_BYTES
LEADER_EPOCH = slice(LEADER_EPOCH_AT, LEADER_EPOCH_AT + LEADER_EPOCH_BYTES)
NO_EPOCH = NO_LEADER_EPOCH.to_bytes(LEADER_EPOCH_BYTES, "big", signed=True)


class Chosen(NamedTuple):
    """The batches of a window that are to be rebuilt, and what stays of them."""

    batches: NDArray[np.intp]  # their numbers in the window, ascending
    kept_records: NDArray[np.int32]  # of each
    horizons_ms: Int64Array  # that each is to be given; -1: keep what it has
    first_records: Int64Array  # of each, among the states
    states: NDArray[np.uint8]  # of all records of the window


class RebuiltBatch(NamedTuple):
    """A batch, whole and with its checksum; None where it is not in the form that Kafka writes."""

    batch: bytes | None
    refused: bool = False  # by Kafka's builder (C-11.14)


def rebuild_packed(
    window: Window, chosen: Chosen, buffers: WorkerBuffers
) -> Iterator[RebuiltBatch]:
    """Yield what becomes of each of the chosen batches, in order."""
    picked = window._replace(rows=window.rows[chosen.batches])
    for run in payloads(picked, buffers):
        rows = picked.rows[run.first : run.end]
        plain, results = _filter(run, rows, chosen, buffers)
        kept = chosen.kept_records[run.first : run.end].tolist()
        horizons_ms = chosen.horizons_ms[run.first : run.end].tolist()
        for row, result, count, horizon_ms in zip(
            rows.tolist(), results.tolist(), kept, horizons_ms, strict=True
        ):
            start, end, base, latest, code, refused, base_offset, last_offset = result
            if code != OK:
                yield RebuiltBatch(None)
                continue
            row[BASE_OFFSET], row[LAST_OFFSET] = base_offset, last_offset
            if not count:
                yield RebuiltBatch(_emptied(row))
                continue
            payload = compress(Codec(row[ATTRIBUTES] & CODEC_MASK), plain[start:end])
            leader_epoch = NO_EPOCH
            if not row[ATTRIBUTES] & LEGACY:
                at = row[POSITION] - window.file_position
                leader_epoch = bytes(window.buffer.data[at : at + BATCH_HEADER_BYTES][LEADER_EPOCH])
            attributes = row[ATTRIBUTES] & PRESERVED_ATTRIBUTES
            if horizon_ms >= 0 or (row[ATTRIBUTES] & DELETE_HORIZON and row[BASE_TIMESTAMP] >= 0):
                attributes |= DELETE_HORIZON
            batch = _batch(row, leader_epoch, (attributes, base, latest, count), payload)
            yield RebuiltBatch(batch, bool(refused))


def _emptied(row: list[int]) -> bytes:
    """A batch without records in the place of a legacy one, which has no such form (C-11.14)."""
    facts = row[ATTRIBUTES] & LOG_APPEND_TIME, -1, row[MAX_TIMESTAMP], 0
    return _batch(row, NO_EPOCH, facts, b"")


def _filter(
    run: Payloads, rows: Int64Array, chosen: Chosen, buffers: WorkerBuffers
) -> tuple[memoryview, Int64Array]:
    """The kept records of a run of batches, and the results of rebuild_payloads."""
    count = run.end - run.first
    room = int(run.bounds[:, 1].max()) + SLACK_BYTES
    room += GROWTH_BYTES_PER_RECORD * int(rows[:, RECORDS_COUNT].sum())
    plain = buffers.array("plain", room)
    results = buffers.array("rebuilt", count, np.int64, RESULT_COLUMNS)[:count]
    verdict = (
        chosen.states,
        chosen.first_records[run.first : run.end],
        chosen.horizons_ms[run.first : run.end],
    )
    rebuild_payloads(run.buffer, run.bounds, rows, verdict, plain, results)
    return plain.data, results


def _batch(
    row: list[int], leader_epoch: bytes, facts: tuple[int, int, int, int], payload: bytes
) -> bytes:
    attributes, base_timestamp, max_timestamp, records_count = facts
    tail = TAIL.pack(
        attributes,
        row[LAST_OFFSET] - row[BASE_OFFSET],
        base_timestamp,
        max_timestamp,
        row[PRODUCER_ID],
        row[PRODUCER_EPOCH],
        row[BASE_SEQUENCE],
        records_count,
    )
    length = MIN_BATCH_LENGTH + len(payload)
    checksum = crc32c(payload, crc32c(tail))
    head = HEAD.pack(row[BASE_OFFSET], length, leader_epoch, MAGIC, checksum)
    return b"".join((head, tail, payload))
