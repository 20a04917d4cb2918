"""Searches of a `.log` by kernels.

Of a log that is as it should be they find what `FileRecords` finds batch by batch; where they meet
anything else, they leave it to that.
"""

from enum import Enum, auto
from types import ModuleType
from typing import NamedTuple

import numpy as np

from storage.files.files import ChangingFile
from storage.formats.batch_header import LEADER_EPOCH_AT, LEADER_EPOCH_BYTES
from storage.log.index_files import IndexFile
from storage.log.offsets import TimestampAndOffset
from storage.log.scratch import scratch

WINDOW_BYTES = 8 * 1024  # two index entries are half as far apart, by default,
_NEXT_WINDOW_BYTES = 40 * 1024  # unless the batches are large


class NotKnown(Enum):
    """The answer of who cannot tell."""

    NOT_KNOWN = auto()


NOT_KNOWN = NotKnown.NOT_KNOWN
_MIN_LONG, _MAX_LONG = -(2**63), 2**63 - 1


class InUse(NamedTuple):
    """The bytes of a file from a position up to the end of those in use."""

    file: ChangingFile
    start: int
    end: int


def find_place(
    kernels: ModuleType, index: IndexFile, log: InUse, target: int
) -> tuple[int, int, int] | NotKnown | None:
    """Base offset, position and size of the first batch of a segment whose last offset is not below
    target. index: its offset index. log: all of it.
    """
    file, _, end = log
    held = file.held()
    if held.descriptor < 0 or not _MIN_LONG <= target <= _MAX_LONG:  # an end past the last offset
        return NOT_KNOWN
    room = scratch()
    how, position, base_offset, size = kernels.find_place(
        index.array,
        index.entries,
        index.base_offset,
        (kernels.pread_address(), held.descriptor, end),
        target,
        room.window,
        room.numbers,
    )
    if how == kernels.FOUND:
        return base_offset, position, size
    return None if how == kernels.ENDED else NOT_KNOWN


def find_time(
    kernels: ModuleType, where: InUse, target_ms: int, from_offset: int
) -> TimestampAndOffset | NotKnown | None:
    """The first record that is not older than target, and not below an offset."""
    file, position, end = where
    length = WINDOW_BYTES
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
            room = scratch()
            room.put(batch)
            how, time, offset = kernels.find_record(room.buffer, size, target_ms, from_offset)
            if how == kernels.UNKNOWN:
                return NOT_KNOWN
            if how == kernels.FOUND:
                field = batch[LEADER_EPOCH_AT : LEADER_EPOCH_AT + LEADER_EPOCH_BYTES]
                epoch = int.from_bytes(field, "big", signed=True)
                return TimestampAndOffset(time, offset, None if epoch < 0 else epoch)
            at += size
        position = at


def next_offset(kernels: ModuleType, data: bytes) -> int | NotKnown | None:
    """The offset behind the last whole batch of some bytes; None if there is none."""
    how, last_offset = kernels.last_batch(np.frombuffer(data, np.uint8), len(data))
    if how == kernels.UNKNOWN or last_offset < -1:
        return NOT_KNOWN
    return None if last_offset < 0 else int(last_offset) + 1
