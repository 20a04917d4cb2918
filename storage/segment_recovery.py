"""The indexes that a broker makes for a segment whose `.index` is missing, from its batch headers.

When a broker starts, it recovers such a segment: all its indexes are made anew. What was beside the
`.log` before does not count. Source: Kafka, LogSegment.recover; spec F-12.5, F-16.1.
"""

from itertools import islice

import numpy as np

from storage.segment_indexes import IndexBuilder, SegmentIndexes
from storage.segment_reader import read_batch_headers

_BATCHES_AT_ONCE = 100_000


def rebuilt_indexes(
    log_path: str, base_offset: int, log_bytes: int, index_interval_bytes: int
) -> SegmentIndexes:
    """Build both indexes of a segment. CorruptFileError where the log ends within a batch."""
    builder = IndexBuilder(base_offset, index_interval_bytes)
    headers = (header for _, header in read_batch_headers(log_path, end=log_bytes))
    while some := [
        (header.size_bytes, header.last_offset, header.max_timestamp)
        for header in islice(headers, _BATCHES_AT_ONCE)
    ]:
        sizes, last_offsets, max_timestamps = np.array(some, np.int64).T.copy()
        builder.add(sizes, last_offsets, max_timestamps)
    return builder.finish()
