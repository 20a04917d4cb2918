"""Names, groups and indexes of cleaned segments, slow and obvious, for the tests of grouping
and of the index kernel. Follows compaction.md C-9, C-13.2 and C-14.2."""

from collections.abc import Iterable, Sequence
from struct import pack
from typing import NamedTuple

from tests.support.reference_batch import decode

MAX_RELATIVE_OFFSET = 2**31 - 1


class SourceSegment(NamedTuple):
    base_offset: int
    log_bytes: int
    index_bytes: int
    time_index_bytes: int


def groups(
    segments: Sequence[SourceSegment],
    segment_bytes: int,
    segment_index_bytes: int,
    first_uncleanable_offset: int,
) -> list[list[SourceSegment]]:
    """C-9.1: from the left, as many as fit."""
    bounds = [segment.base_offset for segment in segments[1:]] + [first_uncleanable_offset]
    made: list[list[SourceSegment]] = []
    for segment, bound in zip(segments, bounds, strict=True):
        joined = [*made[-1], segment] if made else []
        fits = (
            bool(made)
            and sum(s.log_bytes for s in joined) <= segment_bytes
            and sum(s.index_bytes for s in joined) <= segment_index_bytes
            and sum(s.time_index_bytes for s in joined) <= segment_index_bytes
            and (segment.log_bytes == 0 or bound - 1 - joined[0].base_offset <= MAX_RELATIVE_OFFSET)
        )
        if fits:
            made[-1].append(segment)
        else:
            made.append([segment])
    return made


def indexes(batches: Iterable[bytes], base_offset: int, interval_bytes: int) -> tuple[bytes, bytes]:
    """Offset index and time index of a `.log` made of these batches."""
    offset_index, time_index, last_indexed_ms = b"", b"", -1
    position = since_entry = 0
    newest_ms, newest_offset = -1, base_offset
    for raw in batches:
        header = decode(raw, with_records=False)
        if header.max_timestamp > newest_ms:
            newest_ms, newest_offset = header.max_timestamp, header.last_offset
        if since_entry > interval_bytes:
            offset_index += pack(">ii", header.last_offset - base_offset, position)
            if newest_ms > last_indexed_ms:
                time_index += pack(">qi", newest_ms, newest_offset - base_offset)
                last_indexed_ms = newest_ms
            since_entry = 0
        since_entry += len(raw)
        position += len(raw)
    if newest_ms > last_indexed_ms:
        time_index += pack(">qi", newest_ms, newest_offset - base_offset)
    return offset_index, time_index
