"""Values that travel, made of what a test is about; all else in them is nothing."""

from typing import Any

from cleaner_jobs.messages import Part, Rewritten, Source, Stretch

NO_PART = Part(
    log_id=0,
    group=0,
    file="f",
    block_at=0,
    block_checksum=0,
    entries=0,
    survivors=0,
    hash_partition_bits=0,
    first_record_offset=0,
    log_bytes=0,
    batches=0,
    records=0,
    superseded=0,
    null_keys=0,
    expired=0,
    aborted=0,
    control_records=0,
    txn_batches=0,
    txn_at=0,
    txn_checksum=0,
    survivor_fingerprints=0,
    tombstones_without_horizon=0,
    empty_batches=0,
    sections=(),
)
NO_REWRITTEN = Rewritten(
    log_id=0,
    group=0,
    number=0,
    left_in_place=False,
    log_file="",
    index_file="",
    time_index_file="",
    txn_index_file="",
    facts_file="",
    log_bytes=0,
    log_checksum=0,
    records_kept=0,
    control_records_kept=0,
    kept_fingerprints=0,
    dropped=0,
    dropped_fingerprints=0,
    batches_kept=0,
    batches_rebuilt=0,
    batches_emptied=0,
)


def part(**values: Any) -> Part:
    return NO_PART._replace(**values)


def rewritten(**values: Any) -> Rewritten:
    return NO_REWRITTEN._replace(**values)


def stretch(source: Source, start: int, end: int, **values: Any) -> Stretch:
    """Of the first segment of the first group of log 0, all of it dirty."""
    whole = Stretch(
        log_id=0,
        group=0,
        segment=0,
        start=start,
        end=end,
        source=source,
        first_dirty_offset=0,
        map_end_offset=2**62,
        hash_partition_bits=0,
    )
    return whole._replace(**values)
