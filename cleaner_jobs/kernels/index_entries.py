"""Whether the entries of an offset index ascend, and each leads to a batch of the log beside it.

Entries are rows of relative offset and position. Rule: log-format F-9.4.
"""

from storage.formats.batch_columns import BASE_OFFSET, POSITION, SIZE, Int64Array
from storage.kernels.kernel import kernel

RELATIVE_OFFSET, ENTRY_POSITION = range(2)  # columns of an entry


@kernel
def first_unordered(entries: Int64Array, log_bytes: int) -> int:
    """The first entry that is no higher than the one before it, or leads out of the log; or -1."""
    offset, position = -1, -1
    for i in range(entries.shape[0]):
        if entries[i, RELATIVE_OFFSET] <= offset or entries[i, ENTRY_POSITION] <= position:
            return i
        offset, position = entries[i, RELATIVE_OFFSET], entries[i, ENTRY_POSITION]
        if position >= log_bytes:
            return i
    return -1


@kernel
def first_unfitting(
    entries: Int64Array, base_offset: int, first: int, rows: Int64Array
) -> tuple[int, int]:
    """From entry `first` on, the first that leads into these batches but not to the start of one,
    or to one that begins behind its offset; and the row of that batch.

    Where all fit: the first entry behind these batches, and -1. entries: in order.
    """
    i, row = first, 0
    while i < entries.shape[0] and row < rows.shape[0]:
        position = entries[i, ENTRY_POSITION]
        if position < rows[row, POSITION]:  # of batches before these
            i += 1
        elif position >= rows[row, POSITION] + rows[row, SIZE]:
            row += 1
        elif (
            position != rows[row, POSITION]
            or rows[row, BASE_OFFSET] > base_offset + entries[i, RELATIVE_OFFSET]
        ):
            return i, row
        else:
            i += 1
    return i, -1
