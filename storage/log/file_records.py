"""One `.log` file: batches are put at its end, read in ranges, looked for, and cut off.

A search by kernels finds what a search batch by batch finds, in a log that is as it should be;
where a kernel meets anything else, the search goes batch by batch. Source: Kafka,
FileRecords; spec L-2.
"""

import contextlib
from collections.abc import Iterator
from enum import Enum, auto
from types import ModuleType
from typing import NamedTuple, Self

import numpy as np

from storage.files.files import ChangingFile, Files
from storage.formats.batch_header import (
    LEADER_EPOCH_AT,
    LEADER_EPOCH_BYTES,
    NO_LEADER_EPOCH,
    NO_TIMESTAMP,
)
from storage.log.batches import Batch, Bytes, in_file, in_memory
from storage.log.errors import IllegalArgumentError, KafkaError
from storage.log.index_files import IndexFile
from storage.log.lazy_kernels import COMPILED, scratch
from storage.log.offsets import UNKNOWN, LargestTimestamp, TimestampAndOffset

WINDOW_BYTES = 8 * 1024  # two index entries are half as far apart, by default,
_NEXT_WINDOW_BYTES = 40 * 1024  # unless the batches are large


class NotKnown(Enum):
    """The answer of a search that does not know what it has met."""

    NOT_KNOWN = auto()


NOT_KNOWN = NotKnown.NOT_KNOWN
_MIN_LONG, _MAX_LONG = -(2**63), 2**63 - 1


def find_time(
    kernels: ModuleType, log: "FileRecords", position: int, target_ms: int, from_offset: int
) -> TimestampAndOffset | NotKnown | None:
    """The first record from a position on that is not older than target, nor below an offset."""
    file, end, length = log.file, log.size_bytes, WINDOW_BYTES
    while True:
        window = file.read(position, min(length, max(end - position, 0)))
        length = _NEXT_WINDOW_BYTES
        buffer = np.frombuffer(window, np.uint8)
        how, at, size = kernels.find_time(buffer, len(window), position, end, target_ms)
        if how == kernels.ENDED:
            return None
        if how == kernels.UNKNOWN or (how == kernels.MORE and at == position):
            return NOT_KNOWN
        if how == kernels.FOUND:
            start = at - position
            batch = window[start : start + size]
            if len(batch) < size:
                batch = file.read(at, size)
            if len(batch) < size:
                return NOT_KNOWN
            buffers = scratch()
            buffers.put(batch)
            how, time, offset = kernels.find_record(buffers.buffer, size, target_ms, from_offset)
            if how == kernels.UNKNOWN:
                return NOT_KNOWN
            if how == kernels.FOUND:
                field = batch[LEADER_EPOCH_AT : LEADER_EPOCH_AT + LEADER_EPOCH_BYTES]
                epoch = int.from_bytes(field, "big", signed=True)
                return TimestampAndOffset(time, offset, None if epoch < 0 else epoch)
            at += size
        position = at


MAX_BYTES = 2**31 - 1


class BatchPosition(NamedTuple):
    """A batch that was looked for."""

    base_offset: int
    position: int
    size_bytes: int


class FileRecords:
    """A file of batches. Its size is what is in use: a preallocated file is longer."""

    def __init__(self, file: ChangingFile, size_bytes: int) -> None:
        self.file, self.size_bytes = file, size_bytes  # file: for a kernel that holds it
        self.is_open = True

    @classmethod
    def open(cls, files: Files, path: str, is_new: bool = False, initial_bytes: int = 0) -> Self:
        """Open or create a file.

        is_new with initial_bytes: the file gets that length at once, and nothing of it is in use.
        """
        file = files.open_to_change(path, create=True)
        if is_new and initial_bytes:
            file.truncate(initial_bytes)
            return cls(file, 0)
        size = file.size()
        if size > MAX_BYTES:
            file.close()
            raise KafkaError(f"{path} has {size} bytes, more than a segment can have")
        return cls(file, size)

    def append(self, data: Bytes) -> int:
        """Put data at the end, and return its length.

        After an OSError the file is as it was, as far as the disk still lets it be cut off.
        """
        if len(data) > MAX_BYTES - self.size_bytes:
            raise IllegalArgumentError(
                f"{len(data)} bytes do not fit behind the {self.size_bytes} of a segment"
            )
        try:
            self.file.write(self.size_bytes, data)
        except OSError:
            with contextlib.suppress(OSError):  # the first error counts
                self.file.truncate(self.size_bytes)
            raise
        self.size_bytes += len(data)
        return len(data)

    def read(self, position: int, length: int) -> bytes:
        """Give length bytes; fewer only where the file ends."""
        return self.file.read(position, length)

    def read_fully(self, position: int, length: int) -> Bytes:
        data = self.file.read(position, length)
        if len(data) < length:
            raise KafkaError(f"{length} bytes expected at byte {position}, found {len(data)}")
        return data

    def slice(self, position: int, length: int) -> "Slice":
        """A view of a range, as far as the file is in use now. No bytes are read."""
        if position < 0 or length < 0 or position > self.size_bytes:
            raise IllegalArgumentError(
                f"{length} bytes at byte {position} of a file of {self.size_bytes}"
            )
        return Slice(self, position, min(length, self.size_bytes - position))

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Yield the batches from a position on, which is the start of one."""
        return in_file(self, start, self.size_bytes)

    def quick_search(
        self, kernels: ModuleType, index: IndexFile, target: int
    ) -> BatchPosition | NotKnown | None:
        """Search as search_for_offset does, from where the offset index of the segment says on."""
        held = self.file.held()
        if held.descriptor < 0 or not _MIN_LONG <= target <= _MAX_LONG:  # an end past the last
            return NOT_KNOWN
        buffers = scratch()
        how, position, base_offset, size = kernels.find_place(
            index.array,
            index.entries,
            index.base_offset,
            (kernels.pread_address(), held.descriptor, self.size_bytes),
            target,
            buffers.window,
            buffers.numbers,
        )
        if how == kernels.FOUND:
            return BatchPosition(base_offset, position, size)
        return None if how == kernels.ENDED else NOT_KNOWN

    def search_for_offset(self, target: int, start: int = 0) -> BatchPosition | None:
        """Find the first batch from a position on whose last offset is not below target."""
        before: Batch | None = None
        for batch in self.batches(start):
            base_offset = batch.base_offset
            if base_offset >= target:
                has_it = before is not None and base_offset > target
                if before is not None and has_it and before.last_offset >= target:
                    return _place(before)
                return BatchPosition(base_offset, batch.position, batch.size_bytes)
            before = batch
        if before is not None and before.last_offset >= target:
            return _place(before)
        return None

    def end_offset(self, target: int, start: int) -> int | None:
        """The offset after the last batch, where `search_for_offset` finds one; None otherwise."""
        end: int | None = None
        before: Batch | None = None  # the last one below target
        for batch in self.batches(start):
            if end is None and batch.base_offset < target:
                before = batch
                continue
            if end is None and before is not None and batch.base_offset > target:
                _ = before.last_offset  # asked for by Kafka, too: it may be unreadable
            end = batch.last_offset + 1
        if end is None and before is not None and before.last_offset >= target:
            end = before.last_offset + 1
        return end

    def search_for_timestamp(
        self, target_ms: int, start: int, from_offset: int
    ) -> TimestampAndOffset | None:
        """Find the first record from a position on that is not older than target.

        Records below from_offset are passed over.
        """
        kernels = COMPILED.kernels or COMPILED.kernels_for(WINDOW_BYTES)
        if kernels is not None:
            found = find_time(kernels, self, start, target_ms, from_offset)
            if found is not NOT_KNOWN:
                return found
        for batch in self.batches(start):
            if batch.max_timestamp < target_ms:
                continue
            for record in batch.records():
                if record.timestamp >= target_ms and record.offset >= from_offset:
                    epoch = batch.leader_epoch
                    return TimestampAndOffset(
                        record.timestamp, record.offset, None if epoch == NO_LEADER_EPOCH else epoch
                    )
        return None

    def largest_timestamp_after(self, start: int) -> LargestTimestamp:
        """The largest time in the headers of the batches from a position on."""
        largest = LargestTimestamp(NO_TIMESTAMP, UNKNOWN)
        for batch in self.batches(start):
            if batch.max_timestamp > largest.timestamp_ms:
                largest = LargestTimestamp(batch.max_timestamp, batch.last_offset)
        return largest

    def truncate_to(self, size_bytes: int) -> int:
        """Cut the file off, wherever that is; give how many bytes of those in use that costs."""
        before = self.size_bytes
        if not 0 <= size_bytes <= before:
            raise KafkaError(f"a file of {before} bytes cannot be cut off at byte {size_bytes}")
        if size_bytes < self.file.size():
            self.file.truncate(size_bytes)
            self.size_bytes = size_bytes
        return before - size_bytes

    def trim(self) -> None:
        """Cut off what is not in use of a preallocated file."""
        self.truncate_to(self.size_bytes)

    def flush(self) -> None:
        self.file.sync()

    def close(self) -> None:
        """Trim, flush and close. A second call does nothing."""
        if self.is_open:
            self.trim()
            self.flush()
            self.close_handle()

    def close_handle(self) -> None:
        """Close without a flush or a trim."""
        if self.is_open:
            self.is_open = False
            self.file.close()


def next_offset(data: bytes) -> int | None:
    """Return the offset after the last whole batch of some bytes; None if no batch is whole.

    There the next read begins. Raise CorruptRecordError where they are no batches.
    """
    kernels = COMPILED.kernels or COMPILED.kernels_for(len(data))
    if kernels is not None:
        how, last_offset = kernels.last_batch(np.frombuffer(data, np.uint8), len(data))
        if how == kernels.ENDED and last_offset >= -1:
            return None if last_offset < 0 else int(last_offset) + 1
    found = None
    for batch in in_memory(data):
        found = batch.last_offset + 1
    return found


class Slice(NamedTuple):
    """A range of a file of batches, which may end within one."""

    records: FileRecords
    position: int
    size_bytes: int

    def read(self) -> bytes:
        """The bytes, read once."""
        return self.records.read(self.position, self.size_bytes)

    def batches(self) -> Iterator[Batch]:
        """Yield the whole batches."""
        return in_file(self.records, self.position, self.position + self.size_bytes)


def _place(batch: Batch) -> BatchPosition:
    return BatchPosition(batch.base_offset, batch.position, batch.size_bytes)
