"""A segment of a log as its files stand on disk: names, sizes and times, no contents."""

from typing import NamedTuple

MAX_LOG_BYTES = 2**31 - 1  # Kafka addresses a segment with 32 bits (F-2.6)
MAX_RELATIVE_OFFSET = 2**31 - 1  # of a record in a segment to its base offset


class Segment(NamedTuple):
    """One `.log` file and the index files beside it."""

    base_offset: int
    log_bytes: int
    index_bytes: int | None  # None: there is no such file
    time_index_bytes: int | None
    txn_index_bytes: int | None
    log_mtime_ns: int
    log_inode: int
    log_ctime_ns: int = 0
    log_device: int = 0
