"""Rebuilds the indexes of a sound segment in memory, without a change of its files.

What the recovery of a log makes, `storage.log` decides. Source: Kafka, LogSegment.recover;
spec F-12.5.
"""

from itertools import islice

import numpy as np

from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats.segment_indexes import IndexBuilder, SegmentIndexes
from storage.log.segment_reader import read_batch_headers

_BATCHES_AT_ONCE = 100_000


def rebuilt_indexes(
    log_path: str,
    base_offset: int,
    log_bytes: int,
    index_interval_bytes: int,
    files: Files = LOCAL,
) -> SegmentIndexes:
    """Build both indexes of a segment. CorruptFileError where the log ends within a batch."""
    builder = IndexBuilder(base_offset, index_interval_bytes)
    headers = (header for _, header in read_batch_headers(log_path, 0, log_bytes, files))
    while some := [
        (h.size_bytes, h.last_offset, h.max_timestamp) for h in islice(headers, _BATCHES_AT_ONCE)
    ]:
        builder.add(*np.array(some, np.int64).T.copy())
    return builder.finish()
