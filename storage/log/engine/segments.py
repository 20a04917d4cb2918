"""The segments of a log, by base offset. Source: Kafka, LogSegments; spec L-12, C-2.1."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from storage.log.engine.errors import IllegalArgumentError
from storage.log.engine.segment import LogSegment


class LogSegments:
    """A sorted map; the last segment is the active one."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._by_base: dict[int, LogSegment] = {}

    def __len__(self) -> int:
        return len(self._bases)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter([self._by_base[base] for base in self._bases])

    def __contains__(self, base_offset: int) -> bool:
        return base_offset in self._by_base

    def add(self, segment: LogSegment) -> None:
        """Put a segment in its place, over one of the same base offset."""
        if segment.base_offset not in self._by_base:
            insort(self._bases, segment.base_offset)
        self._by_base[segment.base_offset] = segment

    def remove(self, base_offset: int) -> None:
        if self._by_base.pop(base_offset, None) is not None:
            self._bases.remove(base_offset)

    def clear(self) -> None:
        self._bases.clear()
        self._by_base.clear()

    @property
    def bases(self) -> list[int]:
        return list(self._bases)

    @property
    def first(self) -> LogSegment:
        return self._by_base[self._bases[0]]

    @property
    def active(self) -> LogSegment:
        return self._by_base[self._bases[-1]]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self)

    def floor(self, offset: int) -> LogSegment | None:
        """The segment with the greatest base offset that is not above offset."""
        at = bisect_right(self._bases, offset)
        return self._by_base[self._bases[at - 1]] if at else None

    def lower(self, offset: int) -> LogSegment | None:
        """The segment with the greatest base offset below offset."""
        at = bisect_left(self._bases, offset)
        return self._by_base[self._bases[at - 1]] if at else None

    def higher(self, offset: int) -> LogSegment | None:
        """The segment with the smallest base offset above offset."""
        at = bisect_right(self._bases, offset)
        return self._by_base[self._bases[at]] if at < len(self._bases) else None

    def values(self, start: int, end: int) -> list[LogSegment]:
        """The segments of a range of offsets, from the one that holds start on."""
        if start == end:
            return []
        if end < start:
            raise IllegalArgumentError(f"a range of offsets from {start} to {end}")
        first = max(bisect_right(self._bases, start) - 1, 0)
        return [self._by_base[base] for base in self._bases[first:] if base < end]

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
