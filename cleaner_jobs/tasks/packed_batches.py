"""Compressed and legacy batches, rebuilt: filtered many at a time, compressed one by one.

The bytes of the payload are those of Kafka's own codec libraries at their default levels, whatever
level the batch came with (compaction C-11.11 d).
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.kept_batches import REBUILD_WITH_HORIZON
from cleaner_jobs.kernels.rebuild import (
    GROWTH_BYTES_PER_RECORD,
    PRESERVED_ATTRIBUTES,
    RESULT_COLUMNS,
    rebuild_payloads,
)
from cleaner_jobs.tasks.batch_window import Payloads, Window, digests_of, payloads
from cleaner_jobs.tasks.same_as_source import Decided, check_payloads
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
    ByteArray,
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


class RebuiltBatch(NamedTuple):
    """A batch, whole and with its checksum; None where it is not in the form that Kafka writes."""

    batch: bytes | None
    refused: bool = False  # by Kafka's builder (C-11.14)
    digest: int | None = None  # of its records, before they were compressed


def rebuild_packed(
    window: Window, numbers: NDArray[np.intp], decided: Decided, buffers: WorkerBuffers
) -> Iterator[RebuiltBatch]:
    """Yield what becomes of each of the batches of these numbers, in order.

    What is expected in their headers is filled in before. Raise MiswrittenError where the records
    that are to be compressed are not those of the source.
    """
    picked = window._replace(rows=window.rows[numbers])
    given = decided.actions[numbers] == REBUILD_WITH_HORIZON
    horizons_ms = np.where(given, decided.horizon_ms, -1).astype(np.int64)
    for run in payloads(picked, buffers, digested=True):
        rows, chosen = picked.rows[run.first : run.end], numbers[run.first : run.end]
        its_horizons_ms = horizons_ms[run.first : run.end]
        decisions = decided.states, decided.ordinals[chosen], its_horizons_ms
        plain, results = _filter(run, rows, decisions, buffers)
        digests = digests_of(plain, results[:, :2])
        decided.expected[chosen] = check_payloads(
            picked, run, (*decisions, decided.horizon_ms >= 0), (plain, results)
        )
        kept = decided.kept_records[chosen].tolist()
        for row, result, count, horizon_ms, digest in zip(
            rows.tolist(),
            results.tolist(),
            kept,
            its_horizons_ms.tolist(),
            digests.tolist(),
            strict=True,
        ):
            start, end, base, latest, code, refused, base_offset, last_offset = result
            if code != OK:
                yield RebuiltBatch(None)
                continue
            row[BASE_OFFSET], row[LAST_OFFSET] = base_offset, last_offset
            if not count:
                yield RebuiltBatch(_emptied(row))
                continue
            payload = compress(Codec(row[ATTRIBUTES] & CODEC_MASK), plain.data[start:end])
            attributes = row[ATTRIBUTES] & PRESERVED_ATTRIBUTES
            if horizon_ms >= 0 or (row[ATTRIBUTES] & DELETE_HORIZON and row[BASE_TIMESTAMP] >= 0):
                attributes |= DELETE_HORIZON
            facts = attributes, base, latest, count
            batch = _batch(row, _leader_epoch(window, row), facts, payload)
            yield RebuiltBatch(batch, bool(refused), digest)


def _leader_epoch(window: Window, row: list[int]) -> bytes:
    if row[ATTRIBUTES] & LEGACY:
        return NO_EPOCH
    at = row[POSITION] - window.file_position
    return bytes(window.buffer.data[at : at + BATCH_HEADER_BYTES][LEADER_EPOCH])


def _emptied(row: list[int]) -> bytes:
    """A batch without records in the place of a legacy one, which has no such form (C-11.14)."""
    facts = row[ATTRIBUTES] & LOG_APPEND_TIME, -1, row[MAX_TIMESTAMP], 0
    return _batch(row, NO_EPOCH, facts, b"")


def _filter(
    run: Payloads,
    rows: Int64Array,
    decisions: tuple[NDArray[np.uint8], Int64Array, Int64Array],
    buffers: WorkerBuffers,
) -> tuple[ByteArray, Int64Array]:
    """The kept records of a run of batches, and the results of rebuild_payloads.

    decisions: as of rebuild_payloads.
    """
    count = run.end - run.first
    room = int(run.bounds[:, 1].max()) + SLACK_BYTES
    room += GROWTH_BYTES_PER_RECORD * int(rows[:, RECORDS_COUNT].sum())
    plain = buffers.array("plain", room)
    results = buffers.array("rebuilt", count, np.int64, RESULT_COLUMNS)[:count]
    rebuild_payloads(run.buffer, run.bounds, rows, decisions, plain, results)
    return plain, results


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
