"""Transactions that are open at the end of a log, and what they keep from being cleaned."""

import os
from bisect import bisect_right
from collections.abc import Iterator

from compactor.inspection.inspection import BlockingTransaction
from storage.file_names import INDEX, LOG, file_name
from storage.formats import offset_index
from storage.formats.legacy_messages import decode_records
from storage.formats.record import Record
from storage.formats.record_batch import BatchHeader
from storage.log import segment_reader
from storage.log.log_dir import PartitionListing, log_end_offset
from storage.log.producer_state import ExpiryClock, load_producer_state


def open_transactions(
    listing: PartitionListing, log_start_offset: int, has_clean_shutdown: bool, as_of_ms: int
) -> Iterator[BlockingTransaction]:
    """Yield them, the oldest first, as a broker that loads the log knows them.

    Raise CorruptFileError or OSError where its end or its snapshots cannot be read.
    """
    end_offset = log_end_offset(listing)
    clock = ExpiryClock(as_of_ms)
    state = load_producer_state(listing, log_start_offset, end_offset, clock, has_clean_shutdown)
    for txn in state.open_transactions:
        last_ms = txn.last_timestamp_ms
        yield BlockingTransaction(
            producer_id=txn.producer_id,
            producer_epoch=txn.producer_epoch,
            transactional_id=None,
            first_offset=txn.first_offset,
            last_ms=last_ms,
            age_ms=None if last_ms is None else as_of_ms - last_ms,
            blocked_bytes=_bytes_from(listing, txn.first_offset),
        )


def _bytes_from(listing: PartitionListing, offset: int) -> int:
    """Return the bytes of .log files from the batch with an offset to the end of the log."""
    found = batch_with(listing, offset)
    if found is None:
        return 0
    _, position, header = found
    behind = [s.log_bytes for s in listing.segments if s.base_offset > header.base_offset]
    holding = [s.log_bytes for s in listing.segments if s.base_offset <= header.base_offset]
    return sum(behind) + holding[-1] - position


def record_at(log: PartitionListing, offset: int) -> Record | None:
    """Give it; None where no record has that offset. Raise CorruptFileError or OSError."""
    found = batch_with(log, offset)
    if found is None:
        return None
    path, position, header = found
    with log.access.open(path) as source:
        batch = source.read(position, header.size_bytes)
    records = decode_records(batch, header, path, position)
    return next((record for record in records if record.offset == offset), None)


def batch_with(log: PartitionListing, offset: int) -> tuple[str, int, BatchHeader] | None:
    """Return file, position and header of the first batch that ends at an offset or later."""
    bases = [segment.base_offset for segment in log.segments]
    number = bisect_right(bases, offset) - 1
    if number < 0:
        return None
    segment = log.segments[number]
    stem = os.path.join(log.path, file_name(segment.base_offset, ""))
    start = 0
    if segment.index_bytes:
        entries = offset_index.read(stem + INDEX, log.access)
        start = offset_index.search(entries, segment.base_offset, offset).position
    headers = segment_reader.read_batch_headers(
        stem + LOG, start, segment.log_bytes, files=log.access
    )
    for position, header in headers:
        if header.last_offset >= offset:
            return stem + LOG, position, header
    return None
