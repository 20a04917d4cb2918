"""The segments of a log, by base offset. Source: Kafka, LogSegments; spec L-12, C-2.1."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence

from storage.log.errors import IllegalArgumentError
from storage.log.segment import LogSegment


class LogSegments:
    """A sorted map; the last segment is the active one.

    One writer, many readers: a change puts another list in the place of the one that was there, so
    that who reads works on the segments as they were when the call began.
    """

    def __init__(self) -> None:
        self._segments: tuple[LogSegment, ...] = ()

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._segments)

    def __contains__(self, base_offset: int) -> bool:
        found = self.floor(base_offset)
        return found is not None and found.base_offset == base_offset

    def add(self, segment: LogSegment) -> None:
        """Put a segment in its place, over one of the same base offset."""
        self.exchange([], [segment])

    def remove(self, base_offset: int) -> None:
        self.exchange([base_offset], [])

    def exchange(self, gone: Collection[int], made: Sequence[LogSegment]) -> None:
        """Take segments out by base offset, and put others in, over those of the same base offset;
        no reader sees anything between.
        """
        before = self._segments
        if (
            not gone
            and len(made) == 1
            and (not before or before[-1].base_offset < made[0].base_offset)
        ):
            self._segments = (*before, made[0])
            return
        kept = {segment.base_offset: segment for segment in before}
        for base in gone:
            kept.pop(base, None)
        kept |= {segment.base_offset: segment for segment in made}
        self._segments = tuple(kept[base] for base in sorted(kept))

    def clear(self) -> None:
        self._segments = ()

    @property
    def bases(self) -> list[int]:
        return [segment.base_offset for segment in self._segments]

    def last_bases(self, count: int) -> list[int]:
        """The base offsets of the last segments."""
        return [segment.base_offset for segment in self._segments[-count:]]

    @property
    def first(self) -> LogSegment:
        return self._segments[0]

    @property
    def active(self) -> LogSegment:
        return self._segments[-1]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self)

    def floor(self, offset: int) -> LogSegment | None:
        """The segment with the greatest base offset that is not above offset."""
        segments = self._segments
        at = bisect_right(segments, offset, key=_base)
        return segments[at - 1] if at else None

    def lower(self, offset: int) -> LogSegment | None:
        """The segment with the greatest base offset below offset."""
        segments = self._segments
        at = bisect_left(segments, offset, key=_base)
        return segments[at - 1] if at else None

    def higher(self, offset: int) -> LogSegment | None:
        """The segment with the smallest base offset above offset."""
        segments = self._segments
        at = bisect_right(segments, offset, key=_base)
        return segments[at] if at < len(segments) else None

    def values(self, start: int, end: int) -> list[LogSegment]:
        """The segments of a range of offsets, from the one that holds start on."""
        if start == end:
            return []
        if end < start:
            raise IllegalArgumentError(f"a range of offsets from {start} to {end}")
        segments = self._segments
        first = max(bisect_right(segments, start, key=_base) - 1, 0)
        return list(segments[first : bisect_left(segments, end, key=_base)])

    def move_to(self, directory: str) -> None:
        """The directory of the log has got another name."""
        for segment in self:
            segment.move_to(directory)

    def close(self) -> None:
        for segment in self:
            segment.close()

    def close_handles(self) -> None:
        for segment in self:
            segment.close_handles()


def _base(segment: LogSegment) -> int:
    return segment.base_offset
