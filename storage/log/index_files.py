"""The index files of a segment that is in use: by offset, by time, and of aborted transactions.

The file of a segment that is appended to is as long as segment.index.bytes allows, with zeros
after the entries in use; one that is opened again counts every slot as in use. The entries are
kept in memory, too.

A file is opened when it is first needed: a segment that was never written to, read or flushed has
none. Readers may be the first to need it, and a flush may come beside an append: so what opens,
syncs, resizes and closes it excludes one another; an append does not wait for a flush. The index of
aborted transactions is there once it has an entry, and has none of that.

The bytes of entries are those of `storage.formats.offset_index`, `time_index` and `txn_index`.
Source: Kafka, AbstractIndex, LazyIndex, OffsetIndex.append, TimeIndex.maybeAppend,
TransactionIndex; spec F-9 to F-11, L-4 to L-7.
"""

from collections.abc import Iterator
from struct import Struct
from threading import RLock
from typing import NamedTuple, Self

import numpy as np

from storage.files.files import ChangingFile, Files, remove_if_exists, rename_if_exists
from storage.formats import txn_index
from storage.formats.batch_header import NO_TIMESTAMP
from storage.formats.index_entry import OffsetPosition
from storage.formats.txn_index import Aborted, AbortedTxn
from storage.formats.varint import Bytes
from storage.kafka_versions import KafkaVersion
from storage.log.errors import (
    BufferOverflowError,
    CorruptIndexError,
    IllegalArgumentError,
    IllegalStateError,
    IndexOffsetOverflowError,
    InvalidOffsetError,
    KafkaError,
)
from storage.log.lazy_kernels import COMPILED
from storage.log.offsets import LargestTimestamp

MAX_RELATIVE_OFFSET = 2**31 - 1
_WARM_BYTES = 8192  # at the end of an index
_LEAST_ROOM_BYTES = 256  # for entries, in memory
_NO_DATA = bytearray()
_NO_ARRAY = np.frombuffer(_NO_DATA, np.uint8)


class IndexFile:
    """Entries of one size in a file. Open once it was used; `entries` counts those in use."""

    def __init__(
        self, files: Files, path: str, base_offset: int, max_bytes: int, entry: Struct
    ) -> None:
        self._files, self.path, self._entry = files, path, entry
        self.base_offset, self.max_bytes = base_offset, max_bytes
        self.entries = self.max_entries = 0
        self.data, self.array = _NO_DATA, _NO_ARRAY  # the same twice: the array is for a kernel
        self.is_open = self._is_changed = False
        self._lock = RLock()

    def opened(self, is_read: bool = True) -> Self:
        """Return the file, open; a new one is as long as all the entries that it may get.

        is_read: with the entries that it has.
        """
        if not self.is_open:
            with self._lock:
                if not self.is_open:  # by another thread, meanwhile
                    self._open(is_read)
        return self

    def _open(self, is_read: bool) -> None:
        entry = self._entry
        is_new = not self._files.exists(self.path)
        try:
            file = self._files.open_to_change(self.path, create=True)
        except FileNotFoundError as error:
            raise OSError(f"{self.path} cannot be made: its directory is gone") from error
        try:
            if is_new:
                if self.max_bytes < entry.size:
                    raise IllegalArgumentError(f"no entry fits an index of {self.max_bytes} bytes")
                file.truncate(self.max_bytes - self.max_bytes % entry.size)
            length = file.size()
            used = length - length % entry.size if is_read and not is_new else 0
            data = bytearray(file.read(0, used))
            used = len(data) - len(data) % entry.size  # fewer where somebody cuts it meanwhile
            self._hold(data)
        except BaseException:
            file.close()
            raise
        self._file: ChangingFile = file
        self.entries = used // entry.size
        self.max_entries = length // entry.size
        self._length, self._is_changed = length, is_new
        self.is_open = True

    @property
    def size_bytes(self) -> int:
        """The bytes in use."""
        return self.entries * self._entry.size

    def _hold(self, data: bytearray) -> None:
        """Take a buffer for the entries, and for more.

        It keeps its length, and a reader goes on with the one that it has.
        """
        self.data, self.array = data, np.frombuffer(data, np.uint8)

    def add(self, packed: Bytes) -> None:
        """Put one entry or more after the others, in memory and in the file."""
        at, end = self.size_bytes, self.size_bytes + len(packed)
        if end > self.max_entries * self._entry.size:
            raise BufferOverflowError(f"{self.path} has no room left")
        self._write(at, packed)
        if end > len(self.data):
            self._hold(self.data[:at].ljust(max(2 * end, _LEAST_ROOM_BYTES), b"\0"))
        self.data[at:end] = packed
        self.entries = end // self._entry.size

    def put_after_last(self, packed: Bytes) -> None:
        """Write bytes after the last entry, not counted; the next entry overwrites them."""
        self._write(self.size_bytes, packed)

    def _write(self, position: int, data: Bytes) -> None:
        try:
            self._file.write(position, data)
        finally:
            self._is_changed = True  # after the write: a flush beside it may not have synced it

    def keep(self, entries: int) -> None:
        """Forget all entries but the first ones; the file stays as it is."""
        self.entries = entries

    def resize(self, size_bytes: int, keeps_file: bool = False) -> bool:
        """Give the file another length, in whole entries; return whether it had another.

        It is opened once more for that, by its name; keeps_file: it has just been opened.
        """
        with self._lock:
            return self._resize(size_bytes, keeps_file)

    def _resize(self, size_bytes: int, keeps_file: bool) -> bool:
        rounded = size_bytes - size_bytes % self._entry.size
        if rounded == self._length:
            return False
        if not keeps_file:
            file = self._files.open_to_change(self.path, create=True)
            self._file.close()
            self._file = file
        self._is_changed = True
        self._file.truncate(rounded)
        self._length, self.max_entries = rounded, rounded // self._entry.size
        if self.size_bytes > rounded:
            raise IllegalArgumentError(
                f"{self.path} has {self.size_bytes} bytes of entries, and was to have {rounded}"
            )
        return True

    def trim(self) -> None:
        """Cut off what is not in use."""
        self.resize(self.size_bytes)

    def reset(self) -> None:
        """Forget all entries, and make the file as long as it may get."""
        self.opened(is_read=False).keep(0)
        self.resize(self.max_bytes)

    def flush(self) -> None:
        """Sync it, with all entries of before."""
        with self._lock:
            self._is_changed = False  # before: what is written meanwhile is not synced
            try:
                self._file.sync()
            except BaseException:
                self._is_changed = True
                raise

    def close(self, trims: bool = True) -> None:
        """Trim, flush and close it, if it was opened.

        Kafka trims it after its last flush; zeros that a power cut leaves count as entries then.
        """
        with self._lock:
            if self.is_open:
                if trims:
                    self.trim()
                if self._is_changed:
                    self.flush()
                self.close_handle()

    def close_handle(self) -> None:
        """Close it as it is."""
        with self._lock:
            if self.is_open:
                self.is_open = False
                self._file.close()

    def rename(self, path: str) -> None:
        """Give it another name. A file that was not needed yet need not exist."""
        before, self.path = self.path, path
        if self.is_open:
            self._files.rename(before, path)
        else:
            rename_if_exists(self._files, before, path)


def fits(relative_offset: int) -> bool:
    """Whether an index entry can hold an offset, relative to the base of its segment."""
    return 0 <= relative_offset <= MAX_RELATIVE_OFFSET


class EntryField(NamedTuple):
    """A big-endian number in each entry of an index."""

    entry_bytes: int
    at: int
    number: Struct  # of 4 or 8 bytes


class SlotSearch(NamedTuple):
    """A search among the entries of an index by one of their fields, as Kafka does it.

    The end of an index is searched by itself, since look-ups go there most. In a sound index that
    makes no difference; in a damaged one the answer is Kafka's.
    """

    file: IndexFile
    field: EntryField

    def key(self, number: int) -> int:
        entry_bytes, at, numbers = self.field
        return int(numbers.unpack_from(self.file.data, number * entry_bytes + at)[0])

    def lower_bound(self, target: int) -> int:
        """The number of the last entry not above target; -1 for none."""
        kernels, entries, index = COMPILED.kernels, self.file.entries, self.file.array
        entry_bytes, at, number = self.field
        if kernels is not None and entries * entry_bytes <= len(index):
            warm = _WARM_BYTES // entry_bytes
            search = kernels.lower_bound
            return int(search(index, entry_bytes, at, number.size, entries, warm, target))
        found = self._range(target)
        return found if isinstance(found, int) else self._search(*found, target)[0]

    def keep_below(self, target: int) -> None:
        """Forget the entries from the one on that has target, or would stand after it."""
        number = self.lower_bound(target)
        has_it = number >= 0 and self.key(number) == target
        self.file.keep(number if has_it else number + 1)

    def upper_bound(self, target: int) -> int:
        """Return the number of some entry at or above target, by Kafka's search; -1 for none.

        That is never the first entry of a range that target equals.
        """
        found = self._range(target)
        if isinstance(found, int):
            return 0 if self.file.entries else -1
        number, is_exact = self._search(*found, target)
        if is_exact:
            return number
        return -1 if number == self.file.entries - 1 else number + 1

    def _range(self, target: int) -> tuple[int, int] | int:
        """First and last number to search; -1 where all are above target."""
        last = self.file.entries - 1
        if last < 0:
            return -1
        first_warm = max(0, last - _WARM_BYTES // self.field.entry_bytes)
        if self.key(first_warm) < target:
            return first_warm, last
        if self.key(0) > target:
            return -1
        return 0, first_warm

    def _search(self, low: int, high: int, target: int) -> tuple[int, bool]:
        while low < high:
            middle = (low + high + 1) // 2
            found = self.key(middle)
            if found > target:
                high = middle - 1
            elif found < target:
                low = middle
            else:
                return middle, True
        return low, False


OFFSET_ENTRY = Struct(">ii")  # relative offset, position
_OFFSET_FIELD = EntryField(OFFSET_ENTRY.size, 0, Struct(">i"))
_POSITION_FIELD = EntryField(OFFSET_ENTRY.size, 4, Struct(">i"))


class OffsetIndexFile:
    """Entries by rising offset. The file is opened with the first use."""

    def __init__(self, files: Files, path: str, base_offset: int, max_bytes: int) -> None:
        self.file = IndexFile(files, path, base_offset, max_bytes, OFFSET_ENTRY)
        self._base_offset = base_offset

    @property
    def entries(self) -> int:
        return self.file.opened().entries

    @property
    def is_full(self) -> bool:
        file = self.file.opened()
        return file.entries >= file.max_entries

    @property
    def last_offset(self) -> int:
        """The offset of the last entry; the base offset if there is none."""
        file = self.file.opened()
        if not file.entries:
            return self._base_offset
        at = (file.entries - 1) * OFFSET_ENTRY.size
        return self._base_offset + int(OFFSET_ENTRY.unpack_from(file.data, at)[0])

    def _at(self, number: int) -> OffsetPosition:
        relative, position = OFFSET_ENTRY.unpack_from(self.file.data, number * OFFSET_ENTRY.size)
        return OffsetPosition(self._base_offset + relative, position)

    def append(self, offset: int, position: int) -> None:
        """Add an entry after the others."""
        file = self.file.opened()
        if file.entries >= file.max_entries:
            raise IllegalArgumentError(f"{file.path} is full, its entries are {file.entries}")
        if file.entries and offset <= self.last_offset:
            raise InvalidOffsetError(
                f"offset {offset} is not above {self.last_offset}, the last one of {file.path}"
            )
        relative = offset - self._base_offset
        if not fits(relative):
            raise IndexOffsetOverflowError(f"offset {offset} does not fit {file.path}")
        file.add(OFFSET_ENTRY.pack(relative, position))

    def lookup(self, target: int) -> OffsetPosition:
        """The entry with the greatest offset that is not above target; else the base, at 0."""
        search = SlotSearch(self.file.opened(), _OFFSET_FIELD)
        number = search.lower_bound(target - self._base_offset)
        return OffsetPosition(self._base_offset, 0) if number < 0 else self._at(number)

    def upper_bound(self, start: OffsetPosition, size_bytes: int) -> OffsetPosition | None:
        """Return some entry at or past the end of a range of the log, by Kafka's search, or None.

        That is never the first entry of a range that it equals.
        """
        target = (start.position + size_bytes + 2**31) % 2**32 - 2**31
        number = SlotSearch(self.file.opened(), _POSITION_FIELD).upper_bound(target)
        return None if number < 0 else self._at(number)

    def truncate_to(self, offset: int) -> None:
        """Keep the entries below an offset."""
        SlotSearch(self.file.opened(), _OFFSET_FIELD).keep_below(offset - self._base_offset)


TIME_ENTRY = Struct(">qi")  # timestamp, relative offset
_TIME_FIELD = EntryField(TIME_ENTRY.size, 0, Struct(">q"))
_TIME_OFFSET_FIELD = EntryField(TIME_ENTRY.size, 8, Struct(">i"))


class TimeIndexFile:
    """Entries by rising time. The file is opened with the first use."""

    def __init__(self, files: Files, path: str, base_offset: int, max_bytes: int) -> None:
        self.file = IndexFile(files, path, base_offset, max_bytes, TIME_ENTRY)
        self._base_offset = base_offset

    @property
    def is_full(self) -> bool:
        """One slot is kept for the entry that a segment gets at its end."""
        file = self.file.opened()
        return file.entries >= file.max_entries - 1

    @property
    def last(self) -> LargestTimestamp:
        """The last entry; of an empty index no time, and the base offset."""
        entries = self.file.opened().entries
        return self._at(entries - 1) if entries else self._none

    @property
    def _none(self) -> LargestTimestamp:
        """The entry that stands for none."""
        return LargestTimestamp(NO_TIMESTAMP, self._base_offset)

    def _at(self, number: int) -> LargestTimestamp:
        timestamp, relative = TIME_ENTRY.unpack_from(self.file.data, number * TIME_ENTRY.size)
        return LargestTimestamp(timestamp, self._base_offset + relative)

    def maybe_append(self, timestamp_ms: int, offset: int, skip_full_check: bool = False) -> None:
        """Add an entry if its time is above the last one's.

        A full index refuses even what it would not write; skip_full_check: the entry at the end of
        a segment may take its slot.
        """
        file = self.file.opened()
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
                file.put_after_last(
                    _TIME_FIELD.number.pack(timestamp_ms)
                )  # as Kafka, before it looks
                raise IndexOffsetOverflowError(f"offset {offset} does not fit {file.path}")
            file.add(TIME_ENTRY.pack(timestamp_ms, relative))

    def lookup(self, target_ms: int) -> LargestTimestamp:
        """The entry with the greatest time that is not above target; else none, at the base."""
        number = SlotSearch(self.file.opened(), _TIME_FIELD).lower_bound(target_ms)
        return self._none if number < 0 else self._at(number)

    def truncate_to(self, offset: int) -> None:
        """Keep the entries below an offset."""
        search = SlotSearch(self.file.opened(), _TIME_OFFSET_FIELD)
        search.keep_below(offset - self._base_offset)


class TxnIndexFile:
    """Entries by the offsets of abort markers."""

    def __init__(self, files: Files, path: str, base_offset: int, kafka: KafkaVersion) -> None:
        self._files, self.path, self._base_offset = files, path, base_offset
        self._reads_whole_version = kafka.reads_whole_txn_version
        self._file: ChangingFile | None = None
        self._last_offset: int | None = None  # as far as this object knows
        self.is_new = False  # its name may not be on disk yet
        if files.exists(path):
            self._file = files.open_to_change(path)

    @property
    def size_bytes(self) -> int:
        found = self._files.look_up(self.path)
        return 0 if found is None else found.size_bytes

    def append(self, txn: AbortedTxn) -> None:
        """Put an entry at the end of the file."""
        if self._last_offset is not None and self._last_offset >= txn.last_offset:
            raise IllegalArgumentError(
                f"{self.path}: offset {txn.last_offset} is not above {self._last_offset}"
            )
        self._last_offset = txn.last_offset
        if self._file is None:
            self._file = self._files.open_to_change(self.path, create=True)
            self.is_new = True
        self._file.write(self._file.size(), txn_index.encode(txn))

    def entries(self) -> Iterator[AbortedTxn]:
        """Yield the whole entries. KafkaError at one of another version, as far as that is read."""
        return (txn for txn, _ in self._with_positions())

    def _with_positions(self) -> Iterator[tuple[AbortedTxn, int]]:
        if self._file is None:
            return
        data = self._file.read(0, self._file.size())
        for position in range(0, len(data) - txn_index.ENTRY.size + 1, txn_index.ENTRY.size):
            version, *values = txn_index.ENTRY.unpack_from(data, position)
            is_other = (
                version != txn_index.VERSION
                if self._reads_whole_version
                else version >> 8 > txn_index.VERSION
            )
            if is_other:  # V-8: up to Kafka 4.3 the first of its two bytes is read, with its sign
                raise KafkaError(f"{self.path}, byte {position}: an entry of version {version}")
            yield AbortedTxn(*values), position

    def collect(self, from_offset: int, end_offset: int) -> Aborted:
        """The transactions that touch a range, and whether no later segment has another."""
        return txn_index.search(self.entries(), from_offset, end_offset)

    def check(self) -> None:
        """Raise CorruptIndexError for an entry of an earlier segment.

        Raise KafkaError for one of a later version.
        """
        for txn in self.entries():
            if txn.last_offset < self._base_offset:
                raise CorruptIndexError(
                    f"{self.path}: last offset {txn.last_offset}, below {self._base_offset}"
                )

    def truncate_to(self, offset: int) -> None:
        """Cut the file off at the first entry at or past an offset."""
        last: int | None = None
        for txn, position in self._with_positions():
            if txn.last_offset >= offset:
                assert self._file is not None
                self._file.truncate(position)
                self._last_offset = last
                return
            last = txn.last_offset

    def reset(self) -> None:
        if self._file is not None:
            self._file.truncate(0)
        self._last_offset = None

    def flush(self) -> None:
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def rename(self, path: str) -> None:
        before, self.path = self.path, path
        rename_if_exists(self._files, before, path)

    def delete(self) -> None:
        self.close()
        remove_if_exists(self._files, self.path)
