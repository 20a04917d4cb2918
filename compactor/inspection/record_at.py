"""One record of a log, by its offset: for what an inspection names."""

import os
from bisect import bisect_right

from storage.file_names import INDEX, LOG, file_name
from storage.formats import offset_index
from storage.formats.legacy_messages import decode_records
from storage.formats.record import Record
from storage.formats.record_batch import BatchHeader
from storage.log import segment_reader
from storage.log.log_dir import PartitionListing


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
    """Give file, position and header of the first batch that ends at an offset or behind it."""
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
