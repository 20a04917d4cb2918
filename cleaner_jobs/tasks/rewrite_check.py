"""Checks rewritten batches against their source, in memory and when they are read back.

While both are in memory, the written batches are compared with their source, after they have got
their checksum: what changes later is noticed when they are read back. The checksum of the source is
computed after that, so what changed in it before is noticed then.

A checksum holds every byte of a sealed batch that follows it. What stands before it is summed up
(`heads_of`). Compression comes before sealing, so the records of a compressed batch have a digest,
which must be that of what they are decompressed to again.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.batch_comparison import (
    DIFFERENCES,
    EXPECTED_COLUMNS,
    SAME,
    compare_batches,
    compare_payloads,
    first_other_row,
    have_same_bytes,
    sum_heads,
)
from cleaner_jobs.kernels.rebuild import BatchRows, Decisions, HorizonDecisions, SourceBuffers
from cleaner_jobs.messages import FINGERPRINT_RANGE
from cleaner_jobs.problems import FAULT, MiswrittenError
from cleaner_jobs.tasks.window_reader import digests_of
from storage.formats.batch_columns import (
    BASE_OFFSET,
    BATCH_COLUMNS,
    POSITION,
    RECORDS_END,
    ByteArray,
    Int64Array,
    walk_batches,
)
from storage.formats.batch_kernels import UInt64Array
from storage.formats.batch_windows import NO_RECORDS, Buffers, Payloads, Window
from storage.formats.legacy_upgrade import FramedEntries, upgrade

WHAT_WAS_DECOMPRESSED = "what it was decompressed to"


class Decided(NamedTuple):
    """What is to become of the batches of a window."""

    actions: ByteArray
    kept_records: NDArray[np.int32]
    states: NDArray[np.uint8]  # of all records
    ordinals: Int64Array  # (batches + 1,): where the records of each batch begin among the states
    horizon_ms: int  # of this round
    rebuilt: NDArray[np.bool_]  # which of them
    recompressed: NDArray[np.bool_]  # which of them, as they are done
    places: Int64Array  # (batches, 2): where those that are packed stand, in a buffer of their run
    expected: Int64Array  # (batches, EXPECTED_COLUMNS), filled as they are compared

    def of(self, start: int, end: int) -> Decisions:
        """Return what is decided of the batches start:end and of their records."""
        states = self.states[self.ordinals[start] : self.ordinals[end]]
        return Decisions(self.actions[start:end], self.kept_records[start:end], states)


def check_batches(
    window: Window,
    span: tuple[int, int],
    decided: Decided,
    written: tuple[ByteArray, int],
) -> None:
    """Raise MiswrittenError where what was written of batches span[0]:span[1] is not theirs.

    written: a buffer, and how many bytes from its start on.
    """
    start, end = span
    wrong, difference = compare_batches(
        SourceBuffers(window.buffer, window.file_position, window.upgraded, NO_RECORDS),
        window.rows[start:end],
        decided.of(start, end),
        decided.horizon_ms,
        written,
        decided.expected[start:end],
    )
    if difference != SAME:
        raise miswritten(window, start + wrong, DIFFERENCES[difference])


def check_payloads(
    window: Window,
    run: Payloads,
    decisions: HorizonDecisions,
    written: tuple[ByteArray, Int64Array],
) -> Int64Array:
    """Check what stays of a run of compressed batches against the run, as compare_payloads does.

    What is expected in their headers. Raise MiswrittenError where they differ, or where the run has
    changed since it was decompressed.
    """
    rows = window.rows[run.first : run.end]
    expected = np.zeros((len(rows), EXPECTED_COLUMNS), np.int64)
    wrong, difference = compare_payloads(
        BatchRows(window.buffer, window.file_position, rows),
        (run.buffer, run.bounds),
        decisions,
        written,
        expected,
    )
    if difference != SAME:
        raise miswritten(window, run.first + wrong, DIFFERENCES[difference])
    if len(run.digests):
        changed = digests_of(run.buffer, run.bounds) != run.digests
        if changed.any():
            row = run.first + int(changed.argmax())
            raise miswritten(window, row, WHAT_WAS_DECOMPRESSED)
    return expected


def check_upgraded(window: Window, buffers: Buffers) -> None:
    """Raise MiswrittenError where legacy batches, upgraded once more, come out differently."""
    rows, end = window.rows, len(window.batches())
    again = buffers.array("rows again", len(rows), np.int64, BATCH_COLUMNS)[: len(rows)]
    previous_offset = int(rows[0, BASE_OFFSET]) - 1
    count, *_ = walk_batches(window.buffer, end, window.file_position, previous_offset, again)

    def take(name: str, length: int) -> ByteArray:
        room = max(length, len(window.upgraded)) if name == "upgraded" else length
        return buffers.array(f"{name} again", room)

    entries = FramedEntries(window.path, window.buffer, window.file_position, again[:count])
    done, records, _ = upgrade(entries, previous_offset, take)
    if done == len(rows):
        last = int(rows[:, RECORDS_END].max())
        done = first_other_row(rows, again)
        if done < 0 and have_same_bytes(records, window.upgraded, last):
            return
    raise miswritten(
        window, min(max(done, 0), len(rows) - 1), "its records in the form of format v2"
    )


def miswritten(window: Window, row: int, what: str) -> MiswrittenError:
    """Return the error for a batch of a window whose copy differs in this."""
    problem = f"{what} came out wrong when this batch was written anew; {FAULT}"
    return MiswrittenError(window.path, int(window.rows[row, POSITION]), problem)


def heads_of(buffer: ByteArray, start: int, end: int) -> tuple[int, int]:
    """Return the sum over the batches in buffer[start:end] that sum_heads gives, and their number.

    A length that is wrong makes it another sum.
    """
    total, batches, _ = sum_heads(buffer, start, end)
    return int(total), batches


@dataclass(slots=True)
class WrittenBatches:
    """Batches as they are sealed, in the order of their file."""

    heads: int = 0  # sum, modulo 2^64
    batches: int = 0
    recompressed: bytearray = field(default_factory=bytearray)  # of each batch: whether it was
    digests: int = 0  # of the records of those, before they were compressed: sum, modulo 2^64

    def add(self, buffer: ByteArray, length: int, recompressed: NDArray[np.bool_]) -> None:
        """Take sealed batches, at the start of a buffer. recompressed: of each of them."""
        heads, batches = heads_of(buffer, 0, length)
        self.heads = (self.heads + heads) % FINGERPRINT_RANGE
        self.batches += batches
        self.recompressed += recompressed.tobytes()

    def add_digests(self, digests: UInt64Array) -> None:
        """Take the digests of the records of compressed batches."""
        self.digests = (self.digests + int(digests.sum(dtype=np.uint64))) % FINGERPRINT_RANGE


class ReadBackCheck:
    """Takes the batches of a file as they are read back; MiswrittenError where they are others."""

    def __init__(self, path: str, written: WrittenBatches) -> None:
        self._path, self._written, self._read = path, written, WrittenBatches()
        self._recompressed = np.frombuffer(written.recompressed, np.bool_)

    def take(self, window: Window) -> None:
        before = self._read.batches
        self._its = self._recompressed[before : before + len(window.rows)]
        if len(self._its) < len(window.rows):
            raise self._miswritten("more batches are read back than were written")
        self._read.add(window.buffer, len(window.batches()), self._its[:0])

    def take_payloads(self, run: Payloads) -> None:
        """Take payloads of the window that was taken last."""
        its = self._its[run.first : run.end]
        if its.any():
            self._read.add_digests(digests_of(run.buffer, run.bounds[its]))

    def finish(self) -> None:
        written, found = self._written, self._read
        if (found.heads, found.batches) != (written.heads, written.batches):
            raise self._miswritten("the batches read back are not those that were written")
        if found.digests != written.digests:
            raise self._miswritten("the records read back are not those that were compressed")

    def _miswritten(self, problem: str) -> MiswrittenError:
        return MiswrittenError(self._path, 0, f"{problem}; {FAULT}")
