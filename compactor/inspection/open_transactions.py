"""Transactions that are open at the end of a log, and what they keep from being cleaned."""

from collections.abc import Iterator

from compactor.inspection.inspection import BlockingTransaction
from compactor.inspection.record_at import batch_with
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
    """Of .log, from the batch with an offset to the end of the log."""
    found = batch_with(listing, offset)
    if found is None:
        return 0
    _, position, header = found
    behind = [s.log_bytes for s in listing.segments if s.base_offset > header.base_offset]
    holding = [s.log_bytes for s in listing.segments if s.base_offset <= header.base_offset]
    return sum(behind) + holding[-1] - position
