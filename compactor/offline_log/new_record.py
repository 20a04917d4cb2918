"""A record that is to be appended. Apart from the append, which loads the engine."""

from typing import NamedTuple

_OVERHEAD_BYTES = 20  # of a record beside key, value and headers, about


class NewRecord(NamedTuple):
    """A record that has no offset yet."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int | None = None  # None: that of the append; -1: the record has none
    headers: tuple[tuple[bytes, bytes | None], ...] = ()

    @property
    def size_bytes(self) -> int:
        parts = [self.key, self.value, *(part for header in self.headers for part in header)]
        return _OVERHEAD_BYTES + sum(len(part) for part in parts if part is not None)
