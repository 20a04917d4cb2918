"""Checks what is written anew of batches against their source, while both are in memory.

By then what is written has its checksum, so what changes later is noticed when it is read back. The
checksum of the source is computed after all that, so what changed in it before is noticed then.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.same_batches import (
    compare_batches,
    compare_payloads,
    first_other_row,
    have_same_bytes,
)
from cleaner_jobs.kernels.same_records import DIFFERENCES, EXPECTED_COLUMNS, SAME
from cleaner_jobs.problems import FAULT, MiswrittenError
from cleaner_jobs.tasks.batch_window import digests_of
from cleaner_jobs.tasks.worker_buffers import WorkerBuffers
from storage.formats.batch_columns import (
    BASE_OFFSET,
    BATCH_COLUMNS,
    POSITION,
    RECORDS_END,
    ByteArray,
    Int64Array,
    walk_batches,
)
from storage.formats.batch_windows import Payloads, Window
from storage.formats.legacy_upgrade import Entries, upgrade

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
    rows = window.rows[start:end]
    states = decided.states[decided.ordinals[start] : decided.ordinals[end]]
    wrong, difference = compare_batches(
        (window.buffer, window.upgraded, window.file_position, rows),
        (decided.actions[start:end], states, decided.horizon_ms),
        written,
        decided.expected[start:end],
    )
    if difference != SAME:
        raise miswritten(window, start + wrong, DIFFERENCES[difference])


def check_payloads(
    window: Window,
    run: Payloads,
    decisions: tuple[NDArray[np.uint8], Int64Array, Int64Array, bool],
    written: tuple[ByteArray, Int64Array],
) -> Int64Array:
    """Check what stays of a run of compressed batches against the run, as compare_payloads does.

    What is expected in their headers. Raise MiswrittenError where they differ, or where the run has
    changed since it was decompressed.
    """
    rows = window.rows[run.first : run.end]
    expected = np.zeros((len(rows), EXPECTED_COLUMNS), np.int64)
    wrong, difference = compare_payloads(
        (window.buffer, window.file_position, rows),
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


def check_upgraded(window: Window, buffers: WorkerBuffers) -> None:
    """Raise MiswrittenError where legacy batches, upgraded once more, come out differently."""
    rows, end = window.rows, len(window.batches())
    again = buffers.array("rows again", len(rows), np.int64, BATCH_COLUMNS)[: len(rows)]
    previous_offset = int(rows[0, BASE_OFFSET]) - 1
    count, *_ = walk_batches(window.buffer, end, window.file_position, previous_offset, again)

    def take(name: str, length: int) -> ByteArray:
        room = max(length, len(window.upgraded)) if name == "upgraded" else length
        return buffers.array(f"{name} again", room)

    entries = Entries(window.path, window.buffer, window.file_position, again[:count])
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
    """The error for a batch of a window whose copy differs in this."""
    problem = f"{what} came out wrong when this batch was written anew; {FAULT}"
    return MiswrittenError(window.path, int(window.rows[row, POSITION]), problem)
