"""The offset index of a segment that is in use: appended to, searched, cut off.

The bytes of an entry are those of `storage.formats.offset_index`. Source: Kafka, OffsetIndex; spec
F-9, L-4, L-5.
"""

from struct import Struct

from storage.files.files import Files
from storage.formats.index_entry import OffsetPosition
from storage.log.errors import (
    IllegalArgumentError,
    IndexOffsetOverflowError,
    InvalidOffsetError,
)
from storage.log.index_file import EntryField, IndexFile, SlotSearch, fits

ENTRY = Struct(">ii")  # relative offset, position
_OFFSET = EntryField(ENTRY.size, 0, Struct(">i"))
_POSITION = EntryField(ENTRY.size, 4, Struct(">i"))


class OffsetIndexFile:
    """Entries by rising offset. The file is opened with the first use."""

    def __init__(self, files: Files, path: str, base_offset: int, max_bytes: int) -> None:
        self.file = IndexFile(files, path, base_offset, max_bytes)
        self._base_offset = base_offset

    def opened(self) -> IndexFile:
        """The file, which is created if it is not there."""
        if not self.file.is_open:
            self.file.open(ENTRY)
        return self.file

    @property
    def entries(self) -> int:
        return self.opened().entries

    @property
    def is_full(self) -> bool:
        file = self.opened()
        return file.entries >= file.max_entries

    @property
    def last_offset(self) -> int:
        """Of the last entry; the base offset if there is none."""
        file = self.opened()
        if not file.entries:
            return self._base_offset
        at = (file.entries - 1) * ENTRY.size
        return self._base_offset + int(ENTRY.unpack_from(file.data, at)[0])

    def _at(self, number: int) -> OffsetPosition:
        relative, position = ENTRY.unpack_from(self.file.data, number * ENTRY.size)
        return OffsetPosition(self._base_offset + relative, position)

    def append(self, offset: int, position: int) -> None:
        """Add an entry behind the others."""
        file = self.opened()
        if file.entries >= file.max_entries:
            raise IllegalArgumentError(f"{file.path} is full, its entries are {file.entries}")
        if file.entries and offset <= self.last_offset:
            raise InvalidOffsetError(
                f"offset {offset} is not above {self.last_offset}, the last one of {file.path}"
            )
        relative = offset - self._base_offset
        if not fits(relative):
            raise IndexOffsetOverflowError(f"offset {offset} does not fit {file.path}")
        file.add(ENTRY.pack(relative, position))

    def lookup(self, target: int) -> OffsetPosition:
        """The entry with the greatest offset that is not above target; else the base, at 0."""
        number = self._slot(target)
        return OffsetPosition(self._base_offset, 0) if number < 0 else self._at(number)

    def _slot(self, target: int) -> int:
        """The number of the entry with the greatest offset that is not above target."""
        return SlotSearch(self.opened(), _OFFSET).lower_bound(target - self._base_offset)

    def upper_bound(self, start: OffsetPosition, size_bytes: int) -> OffsetPosition | None:
        """Some entry at or behind the end of a range of the log, by Kafka's search: never the
        first one of a range that it equals; None if there is none.
        """
        target = (start.position + size_bytes + 2**31) % 2**32 - 2**31
        number = SlotSearch(self.opened(), _POSITION).upper_bound(target)
        return None if number < 0 else self._at(number)

    def reset(self) -> None:
        """Forget all entries, and make room for as many as there may be."""
        self.file.reset(ENTRY)

    def truncate_to(self, offset: int) -> None:
        """Keep the entries below an offset."""
        file = self.opened()
        number = self._slot(offset)
        has_it = number >= 0 and self._at(number).offset == offset
        file.keep(number if has_it else number + 1)
