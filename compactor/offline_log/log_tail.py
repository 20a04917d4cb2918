"""Follows a log that somebody else appends to, by the end of its files.

Only whole batches with right checksums are read; what is being written is waited for. Segments are
followed as they are rolled. One that retention or a cleaner has removed meanwhile is passed over.
Nothing is locked or changed.
"""

import os
from collections.abc import Iterator

from compactor.offline_log.log_location import LogLocation
from compactor.offline_log.record_filter import ReadRecord
from storage.errors import CorruptFileError
from storage.file_names import LOG, file_name
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.log.batches import Batch, in_memory
from storage.log.log_dir import list_partition
from storage.log.record_decoder import whole

_CHUNK_BYTES = 1024 * 1024


class LogTail:
    """The end of a log, and what has come since."""

    def __init__(self, at: LogLocation, next_offset: int, files: Files = LOCAL) -> None:
        """Follow a log from next_offset on."""
        self._at, self._files = at, files
        self.next_offset = next_offset
        self._base = -1  # of the segment that is read; -1: none yet
        self._position = 0

    def new_records(self) -> Iterator[list[ReadRecord]]:
        """Yield the records that have come since, a batch at a time.

        Raise CorruptFileError where the log was cut off, or does not go on with a whole batch in a
        segment that nobody appends to any more; OSError.
        """
        bases = self._bases()
        if self._base < 0 and bases:
            self._base = max((b for b in bases if b <= self.next_offset), default=bases[0])
        while True:
            later = [base for base in self._bases() if base > self._base]
            try:
                yield from self._of_segment(is_closed=bool(later))
            except FileNotFoundError:
                self._find_again()
                continue
            if not later:
                return
            self._base, self._position = later[0], 0

    def _find_again(self) -> None:
        """Skip a segment that has gone. Raise CorruptFileError where the log was truncated."""
        bases = self._bases()
        if not bases or bases[-1] <= self._base:
            path = os.path.join(self._at.path, file_name(self._base, LOG))
            problem = f"was removed; the log was read up to offset {self.next_offset} already"
            raise CorruptFileError(path, 0, problem)
        self._base = max((base for base in bases if base <= self.next_offset), default=bases[0])
        self._position = 0

    def _bases(self) -> list[int]:
        listing = list_partition(self._at.path, self._at.topic, self._at.partition, self._files)
        return [segment.base_offset for segment in listing.segments]

    def _of_segment(self, is_closed: bool) -> Iterator[list[ReadRecord]]:
        if self._base < 0:
            return
        path = os.path.join(self._at.path, file_name(self._base, LOG))
        with self._files.open(path) as log:
            size = log.entry.size_bytes
            if size < self._position:
                problem = f"was cut off to {size} bytes; {self._position} were read already"
                raise CorruptFileError(path, size, problem)
            wanted = _CHUNK_BYTES
            while self._position < size:
                data = log.read(self._position, min(wanted, size - self._position))
                begun = self._position
                for batch in in_memory(data):
                    if not batch.is_valid():
                        break
                    yield from self._records_of(batch)
                    self._position += batch.size_bytes
                if self._position > begun:
                    wanted = _CHUNK_BYTES
                elif len(data) == wanted:
                    wanted *= 2  # a larger batch
                else:
                    break
        if is_closed and self._position < size:
            raise CorruptFileError(path, self._position, "no sound batch begins here")

    def _records_of(self, batch: Batch) -> Iterator[list[ReadRecord]]:
        if batch.last_offset < self.next_offset:
            return
        kind = "LogAppendTime" if batch.is_log_append_time else "CreateTime"
        if not batch.is_control:
            yield [
                ReadRecord(
                    offset=record.offset,
                    timestamp_ms=None if record.timestamp < 0 else record.timestamp,
                    timestamp_type=kind if batch.magic else None,
                    key=record.key,
                    value=record.value,
                    headers=tuple((key.decode(errors="replace"), v) for key, v in record.headers),
                )
                for record in map(whole, batch.records())
                if record.offset >= self.next_offset
            ]
        self.next_offset = batch.last_offset + 1
