"""The time index of a segment that is in use: appended to, searched, cut off.

The bytes of an entry are those of `storage.formats.time_index`. Source: Kafka, TimeIndex; spec
F-10, L-4, L-6.
"""

from struct import Struct

from storage.files.files import Files
from storage.formats.batch_header import NO_TIMESTAMP
from storage.log.batches import Bytes
from storage.log.errors import (
    IllegalArgumentError,
    IllegalStateError,
    IndexOffsetOverflowError,
    InvalidOffsetError,
)
from storage.log.file_records import LargestTimestamp
from storage.log.index_file import EntryField, IndexFile, SlotSearch, fits

ENTRY = Struct(">qi")  # timestamp, relative offset
_TIME = EntryField(ENTRY.size, 0, Struct(">q"))
_OFFSET = EntryField(ENTRY.size, 8, Struct(">i"))


class TimeIndexFile:
    """Entries by rising time. The file is opened with the first use."""

    def __init__(self, files: Files, path: str, base_offset: int, max_bytes: int) -> None:
        self.file = IndexFile(files, path, base_offset, max_bytes)
        self._base_offset = base_offset

    def opened(self) -> IndexFile:
        """The file, which is created if it is not there."""
        if not self.file.is_open:
            self.file.open(ENTRY)
        return self.file

    @property
    def is_full(self) -> bool:
        """One slot is kept for the entry that a segment gets at its end."""
        file = self.opened()
        return file.entries >= file.max_entries - 1

    @property
    def last(self) -> LargestTimestamp:
        """The last entry; of an empty index no time, and the base offset."""
        entries = self.opened().entries
        return self._at(entries - 1) if entries else self._none

    @property
    def _none(self) -> LargestTimestamp:
        """What stands for an entry that there is not."""
        return LargestTimestamp(NO_TIMESTAMP, self._base_offset)

    def _at(self, number: int) -> LargestTimestamp:
        timestamp, relative = ENTRY.unpack_from(self.file.data, number * ENTRY.size)
        return LargestTimestamp(timestamp, self._base_offset + relative)

    def maybe_append(self, timestamp_ms: int, offset: int, skip_full_check: bool = False) -> None:
        """Add an entry if its time is above the last one's. A full index refuses even what it
        would not write; skip_full_check: the entry at the end of a segment may take its slot.
        """
        file = self.opened()
        if not skip_full_check and file.entries >= file.max_entries - 1:
            raise IllegalArgumentError(f"{file.path} is full, its entries are {file.entries}")
        last_ms, last_offset = self.last
        if file.entries and offset < last_offset:
            raise InvalidOffsetError(
                f"offset {offset} is below {last_offset}, the last one of {file.path}"
            )
        if file.entries and timestamp_ms < last_ms:
            raise IllegalStateError(
                f"time {timestamp_ms} is below {last_ms}, the last of {file.path}"
            )
        if timestamp_ms > last_ms:
            relative = offset - self._base_offset
            if not fits(relative):
                file.put_behind(_TIME.number.pack(timestamp_ms))  # as Kafka, before it looks
                raise IndexOffsetOverflowError(f"offset {offset} does not fit {file.path}")
            file.add(ENTRY.pack(timestamp_ms, relative))

    def add(self, packed: Bytes) -> None:
        """Put entries behind the others, of which is known that they may come there."""
        if len(packed):
            self.opened().add(packed)

    def lookup(self, target_ms: int) -> LargestTimestamp:
        """The entry with the greatest time that is not above target; else none, at the base."""
        number = self._slot(_TIME, target_ms)
        return self._none if number < 0 else self._at(number)

    def _slot(self, field: EntryField, target: int) -> int:
        return SlotSearch(self.opened(), field).lower_bound(target)

    def truncate_to(self, offset: int) -> None:
        """Keep the entries below an offset."""
        file = self.opened()
        number = self._slot(_OFFSET, offset - self._base_offset)
        has_it = number >= 0 and self._at(number).offset == offset
        file.keep(number if has_it else number + 1)

    def resize(self, size_bytes: int, keeps_file: bool = False) -> None:
        """Give the file another length. keeps_file: as for `IndexFile`."""
        self.opened().resize(size_bytes, keeps_file)

    def reset(self) -> None:
        """Forget all entries, and make room for as many as there may be."""
        self.file.reset(ENTRY)
