"""What is known of batches that were written, for whoever reads them back.

Every byte of a batch from its checksum on is held by that checksum, once it is sealed. What stands
before it is summed up here; and since compressing comes before sealing, the records of batches that
were compressed anew have a digest each, which must be that of what they are decompressed to again.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.same_batches import sum_heads
from cleaner_jobs.problems import FAULT, MiswrittenError
from cleaner_jobs.task_values import FINGERPRINT_RANGE
from cleaner_jobs.tasks.batch_window import digests_of
from storage.formats.batch_columns import ByteArray
from storage.formats.batch_payloads import UInt64Array
from storage.formats.batch_windows import Payloads, Window


def heads_of(buffer: ByteArray, start: int, end: int) -> tuple[int, int]:
    """The sum over the batches in buffer[start:end] that sum_heads gives, and their number.

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
        """Of the records of batches that are compressed."""
        self.digests = (self.digests + int(digests.sum(dtype=np.uint64))) % FINGERPRINT_RANGE


class ReadBackCheck:
    """Takes the batches of a file as they are read back; MiswrittenError where they are others."""

    def __init__(self, path: str, written: WrittenBatches) -> None:
        self._path, self._written, self._found = path, written, WrittenBatches()
        self._recompressed = np.frombuffer(written.recompressed, np.bool_)

    def take(self, window: Window) -> None:
        before = self._found.batches
        self._its = self._recompressed[before : before + len(window.rows)]
        if len(self._its) < len(window.rows):
            raise self._miswritten("more batches are read back than were written")
        self._found.add(window.buffer, len(window.batches()), self._its[:0])

    def take_payloads(self, run: Payloads) -> None:
        """Of the window that was taken last."""
        its = self._its[run.first : run.end]
        if its.any():
            self._found.add_digests(digests_of(run.buffer, run.bounds[its]))

    def finish(self) -> None:
        written, found = self._written, self._found
        if (found.heads, found.batches) != (written.heads, written.batches):
            raise self._miswritten("the batches read back are not those that were written")
        if found.digests != written.digests:
            raise self._miswritten("the records read back are not those that were compressed")

    def _miswritten(self, problem: str) -> MiswrittenError:
        return MiswrittenError(self._path, 0, f"{problem}; {FAULT}")
