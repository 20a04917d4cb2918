"""Every batch of one `.log` file: framing, order, checksum, and that its records decode.

A damaged batch does not hide the following ones as long as its length can be trusted; where it
cannot, the rest of the file is not checked. Rules: log-format F-3.3, F-4.1 to F-4.9, F-5, F-8.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from crc32c import crc32c

from compactor.log_checks.findings import Finding
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import batch_columns
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    BATCH_COLUMNS,
    CHECKSUM,
    LAST_OFFSET,
    LEGACY,
    MAX_TIMESTAMP,
    MIN_RECORD_BYTES,
    POSITION,
    RECORDS_COUNT,
    RECORDS_END,
    RECORDS_START,
    SIZE,
    SLACK_BYTES,
    ByteArray,
    Int64Array,
    RecordLimits,
    parse_records,
    problem_text,
    walk_batches,
)
from storage.formats.batch_header import (
    BATCH_HEADER_BYTES,
    CHECKED_AT,
    CODEC_MASK,
    MAGIC_AT,
    entry_bytes,
)
from storage.formats.batch_windows import NO_DIGESTS, Buffers, decompress_entries
from storage.formats.legacy_upgrade import FramedEntries, has_legacy, take_fresh, upgrade

CHUNK_BYTES = 8 * 1024 * 1024
ROWS = CHUNK_BYTES // BATCH_HEADER_BYTES + 1
MAX_FINDINGS = 20  # of one file; then the rest is not looked at
_FRAMED = (  # problems of a batch whose length is all right
    batch_columns.NEGATIVE_COUNT,
    batch_columns.BAD_CODEC,
    batch_columns.NEGATIVE_OFFSET_DELTA,
    batch_columns.NO_NEXT_OFFSET,
    batch_columns.OFFSETS_NOT_ASCENDING,
)


TakeRecords = Callable[[Int64Array, Any], None]  # rows of batches, and the columns of their records
_ReadInto = Callable[[memoryview, int], int]  # from a position; how many bytes


class _OpenLog(NamedTuple):
    read_into: _ReadInto
    size_bytes: int


class SegmentColumns(NamedTuple):
    """What the indexes are checked against: one row for each batch that could be framed."""

    positions: Int64Array
    last_offsets: Int64Array
    max_timestamps: Int64Array
    end_position: int  # exclusive: how far the file could be framed
    log_bytes: int  # of the framed batches
    records: int
    last_missing_offset: int  # the highest below the last offset; -1: none is missing


NO_LIMITS = RecordLimits(0, 0, 0)  # where nobody takes the states of records


class SegmentCheck:
    """One pass over a `.log` file; findings gather in `findings`."""

    def __init__(
        self,
        path: str,
        base_offset: int,
        limits: RecordLimits = NO_LIMITS,
        take: TakeRecords | None = None,
        files: Files = LOCAL,
    ) -> None:
        """take: gets the columns of some batches."""
        self.path, self._files = path, files
        self._limits, self._take = limits, take
        self.findings: list[Finding] = []
        self._previous_offset = base_offset - 1  # the last of what was framed
        self._offset_before = base_offset - 1  # the last before the rows that are at hand
        self._records = 0
        self._last_missing = -1
        self._buffers = Buffers()

    def run(self) -> SegmentColumns:
        """Check the file from its start to its end. OSError if it cannot be read."""
        framed = [np.empty((0, 3), np.int64)]
        end_position = log_bytes = 0
        with _opened(self.path, self._files) as log:
            for rows, chunk, chunk_position in self._frames(log.read_into, log.size_bytes):
                self._check_checksums(rows, chunk, chunk_position)
                self._check_records(rows, chunk, chunk_position)
                self._look_for_gaps(rows)
                framed.append(rows[:, (POSITION, LAST_OFFSET, MAX_TIMESTAMP)])
                end_position = int(rows[-1, POSITION] + rows[-1, SIZE])
                log_bytes += int(rows[:, SIZE].sum())
        positions, last_offsets, max_timestamps = np.concatenate(framed).T
        return SegmentColumns(
            positions=positions,
            last_offsets=last_offsets,
            max_timestamps=max_timestamps,
            end_position=end_position,
            log_bytes=log_bytes,
            records=self._records,
            last_missing_offset=self._last_missing,
        )

    def _look_for_gaps(self, rows: Int64Array) -> None:
        """Look for gaps before batches and in them, and complete rows."""
        first_offsets, last_offsets = rows[:, BASE_OFFSET], rows[:, LAST_OFFSET]
        before = np.concatenate(([self._offset_before], last_offsets[:-1]))
        gaps = first_offsets[first_offsets != before + 1] - 1
        holes = last_offsets[rows[:, RECORDS_COUNT] != last_offsets - first_offsets + 1]
        missing = int(np.max(np.concatenate((gaps, holes)), initial=-1))
        self._last_missing = max(self._last_missing, missing)

    def _frames(self, log: _ReadInto, size: int) -> Iterator[tuple[Int64Array, ByteArray, int]]:
        """Yield rows of framed batches, the buffer they are in, and its place in the file."""
        position, wanted = 0, CHUNK_BYTES
        while position < size and len(self.findings) <= MAX_FINDINGS:
            chunk, length = _read(log, position, min(wanted, size - position))
            rows = np.empty((ROWS, BATCH_COLUMNS), np.int64)
            count, framed_bytes, error, detail = walk_batches(
                chunk, length, position, self._previous_offset, rows
            )
            if count:
                self._offset_before = self._previous_offset
                self._previous_offset = int(rows[count - 1, LAST_OFFSET])
                yield rows[:count], chunk, position
            position += framed_bytes
            if error:
                self._find(position, problem_text(error, detail))
                if error == batch_columns.OFFSETS_NOT_ASCENDING and detail > -(2**63):
                    self._previous_offset = detail - 1  # reported once; the order starts anew here
                elif error in _FRAMED:
                    position += entry_bytes(chunk, framed_bytes)
                else:
                    return
            elif not framed_bytes:  # a batch that is longer than the chunk, or than the file
                wanted = entry_bytes(chunk, 0) if length > MAGIC_AT else 0
                if not length < wanted <= size - position:
                    whole = f" of {wanted}" if wanted else ""
                    self._find(position, f"batch is cut short: {size - position}{whole} bytes")
                    return
                continue
            wanted = CHUNK_BYTES

    def _check_checksums(self, rows: Int64Array, chunk: ByteArray, chunk_position: int) -> None:
        view = chunk.data
        wanted = (POSITION, SIZE, ATTRIBUTES, CHECKSUM)
        for position, size, attributes, expected in rows[:, wanted].tolist():
            at = position - chunk_position
            if attributes & LEGACY:
                found = crc32(view[at + MAGIC_AT : at + size])
            else:
                found = crc32c(view[at + CHECKED_AT : at + size])
            if found != expected:
                problem = f"batch has CRC {expected:#010x}, its bytes give {found:#010x}"
                self._find(position, problem)

    def _check_records(self, rows: Int64Array, chunk: ByteArray, chunk_position: int) -> None:
        if has_legacy(rows):
            self._check_messages(rows, chunk, chunk_position)
        rows = rows[(rows[:, RECORDS_COUNT] > 0) & (rows[:, ATTRIBUTES] & LEGACY == 0)]
        starts = rows[:, POSITION] - chunk_position
        bounds = np.stack([starts + BATCH_HEADER_BYTES, starts + rows[:, SIZE]], axis=1)
        plain = rows[:, ATTRIBUTES] & CODEC_MASK == 0
        if plain.any():
            self._parse(rows[plain], chunk, bounds[plain])
        if not plain.all():
            self._check_compressed(rows[~plain], chunk, chunk_position)

    def _check_messages(self, rows: Int64Array, chunk: ByteArray, chunk_position: int) -> None:
        """Upgrade and parse the legacy entries among the rows, which are completed."""
        start, previous_offset = 0, self._offset_before
        while start < len(rows):
            left = rows[start:]
            entries = FramedEntries(self.path, chunk, chunk_position, left)
            done, records, problem = upgrade(entries, previous_offset, take_fresh)
            upgraded = left[:done]
            upgraded = upgraded[upgraded[:, ATTRIBUTES] & LEGACY != 0]
            if len(upgraded):
                bounds = np.ascontiguousarray(upgraded[:, RECORDS_START : RECORDS_END + 1])
                self._parse(upgraded, records, bounds)
            start += done
            if problem is not None:
                self._find(problem.position, problem.problem)
                start += 1
            previous_offset = int(rows[start - 1, LAST_OFFSET])

    def _check_compressed(self, rows: Int64Array, chunk: ByteArray, chunk_position: int) -> None:
        """Decompress and parse, several batches at a time as far as the buffer goes."""
        while len(rows):
            bounds = np.empty((len(rows), 2), np.int64)
            done, payloads, problem = decompress_entries(
                FramedEntries(self.path, chunk, chunk_position, rows),
                np.ones(len(rows), np.bool_),
                (bounds, NO_DIGESTS),
                self._buffers.array,
            )
            if done:
                self._parse(rows[:done], payloads, bounds[:done])
            if problem is not None:
                self._find(problem.position, problem.problem)
                done += 1
            rows = rows[done:]

    def _parse(self, rows: Int64Array, payloads: ByteArray, bounds: Int64Array) -> None:
        rows, bounds = self._without_impossible_counts(rows, bounds)
        while len(rows):
            count = int(rows[:, RECORDS_COUNT].sum())
            columns = (
                np.empty(count, np.uint64),
                np.empty(count, np.uint64),
                np.empty(count, np.int64),
                np.empty(count, np.uint8),
            )
            secret = np.uint64(0), np.uint64(0)
            filled, bad, error, detail = parse_records(
                payloads, bounds, rows, self._limits, secret, columns, 0
            )
            self._records += filled
            if self._take is not None and bad < 0:
                self._take(rows, columns)
            if bad < 0:
                return
            self._find(int(rows[bad, POSITION]), problem_text(error, detail))
            rows, bounds = rows[bad + 1 :], bounds[bad + 1 :]

    def _without_impossible_counts(
        self, rows: Int64Array, bounds: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """Leave out batches that claim more records than their bytes could hold."""
        possible = rows[:, RECORDS_COUNT] * MIN_RECORD_BYTES <= bounds[:, 1] - bounds[:, 0]
        for position, count in rows[~possible][:, (POSITION, RECORDS_COUNT)].tolist():
            self._find(position, f"the batch has no room for its count of records, {count}")
        return rows[possible], bounds[possible]

    def _find(self, position: int, problem: str) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(Finding(self.path, position, problem))
        elif len(self.findings) == MAX_FINDINGS:
            self.findings.append(
                Finding(
                    self.path, position, "more is damaged from here on; the rest was not looked at"
                )
            )


@contextmanager
def _opened(path: str, files: Files) -> Iterator[_OpenLog]:
    if files is LOCAL:  # read to where it is looked at, without a copy
        descriptor, entry = LOCAL.open_to_read(path)
        try:
            yield _OpenLog(lambda view, at: os.preadv(descriptor, [view], at), entry.size_bytes)
        finally:
            os.close(descriptor)
        return
    with files.open(path) as opened:

        def read_into(view: memoryview, at: int) -> int:
            data = opened.read(at, len(view))
            view[: len(data)] = data
            return len(data)

        yield _OpenLog(read_into, opened.entry.size_bytes)


def _read(log: _ReadInto, position: int, size: int) -> tuple[ByteArray, int]:
    """Return the bytes from position with slack after them, and how many the file still has."""
    chunk = np.zeros(size + SLACK_BYTES, np.uint8)
    view = chunk.data[:size]
    length = 0
    while length < size:
        read = log(view[length:], position + length)
        if not read:
            break
        length += read
    return chunk, length
