"""Kernels for the transactions of a log: what is noted, followed and flagged, batch by batch.

1. The scan notes a row for each transactional or control batch (`note_txn_batches`).
2. The driver follows these rows in the order of the log (`follow_transactions`, `follow_markers`).
3. Scan and rewrite set the driver's decisions as flags of batches (`flag_aborted`,
   `flag_discardable`).

The driver's table of producers has open addressing: int64, a power of two of rows of TABLE_COLUMNS,
zeros where nothing is. A kernel that finds it more than half full stops before the current batch,
and goes on there when the caller has made the table larger.

Aborted transactions are rows of the four numbers of a `.txnindex` entry. Source: Kafka,
CleanedTransactionMetadata.onBatchRead, onControlBatchRead, ProducerStateManager.lastStableOffset;
compaction C-8, log-format F-11.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.txn_batches import (
    ABORT,
    BASE_OFFSET_WORD,
    COMMIT,
    COUNT_WORD,
    DATA,
    EMPTY_CONTROL,
    HORIZON_AHEAD,
    HORIZON_PASSED,
    KIND_SHIFT,
    KIND_WORD,
    LAST_OFFSET_WORD,
    NO_HORIZON,
    OTHER_CONTROL,
    POSITION_WORD,
    PRODUCER_ID_WORD,
)
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    DISCARDABLE,
    LAST_OFFSET,
    POSITION,
    PRODUCER_ID,
    RECORDS_COUNT,
    SIZE,
    TXN_FLAGS,
    UNREAD,
    Int64Array,
    UInt64Array,
)
from storage.formats.batch_header import CONTROL, DELETE_HORIZON, TRANSACTIONAL
from storage.formats.control_record import ControlType
from storage.kernels.kernel import kernel

ENTRY_PRODUCER, ENTRY_FIRST, ENTRY_LAST = 0, 1, 2  # columns of an aborted transaction

TABLE_COLUMNS = 4
_PRODUCER, _STATE, _ENTRY = 0, 1, 2  # _ENTRY: the number of its aborted transaction, plus one
_LAST_MARKER, _FIRST_DATA = 2, 3  # of follow_markers
_USED, _WITH_DATA, _COMMITTED = 1, 2, 4  # bits of _STATE
_HAS_MARKER, _HAS_DATA = 2, 4  # of follow_markers

MARKER_COLUMNS = 4  # of the markers of an entry
MARKER_OWNER, MARKER_BEFORE, FIRST_DATA, IS_KNOWN = range(MARKER_COLUMNS)
NONE = -1  # no such offset


@kernel
def _slot_of(table: Int64Array, producer_id: int) -> int:
    """Return where a producer stands, or would stand."""
    mask = np.uint64(table.shape[0] - 1)
    mixed = np.uint64(producer_id) * np.uint64(0x9E3779B97F4A7C15)
    slot = (mixed ^ (mixed >> np.uint64(32))) & mask
    while table[slot, _STATE] and table[slot, _PRODUCER] != producer_id:
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)  # type: ignore[return-value]


@kernel
def move_table(table: Int64Array, larger: Int64Array) -> None:
    """Put all that table holds into larger, which is empty and has more rows."""
    for i in range(table.shape[0]):
        if table[i, _STATE]:
            slot = _slot_of(larger, table[i, _PRODUCER])
            for column in range(TABLE_COLUMNS):
                larger[slot, column] = table[i, column]


class AbortedTxns(NamedTuple):
    """Aborted transactions, and how many of them are taken in."""

    entries: Int64Array  # all of them
    known: Int64Array  # the numbers of those that are known, by rising first offset
    taken: int  # of those


@kernel
def follow_transactions(
    batches: tuple[Int64Array, int],
    aborted: AbortedTxns,
    books: tuple[Int64Array, int],
    out: tuple[Any, Int64Array],
) -> tuple[int, int, int]:
    """Keep the books of C-8.1 over batches, as Kafka's cleaner does.

    batches: (n, TXN_WORDS), and the first one that was not taken in yet. books: the table, and how
    many producers it holds. out: for each batch, whether it is data of an aborted transaction, or a
    control batch that may go (uint8), and the number of the transaction whose entry goes with a
    control batch that stays, or -1.

    Returns how many batches are done, how many transactions are taken in then, and how many
    producers the table holds then.
    """
    rows, start = batches
    entries, known, taken = aborted
    table, used = books
    verdicts, kept_entries = out
    room = table.shape[0] // 2
    for i in range(start, rows.shape[0]):
        while taken < known.shape[0]:
            number = known[taken]
            if entries[number, ENTRY_FIRST] > rows[i, LAST_OFFSET_WORD]:
                break
            slot = _slot_of(table, entries[number, ENTRY_PRODUCER])
            if not table[slot, _STATE]:
                if used == room:
                    return i, taken, used
                table[slot, _PRODUCER] = entries[number, ENTRY_PRODUCER]
                table[slot, _STATE] = _USED
                used += 1
            if not table[slot, _ENTRY]:
                table[slot, _ENTRY] = number + 1
            taken += 1
        producer_id = rows[i, PRODUCER_ID_WORD]
        slot = _slot_of(table, producer_id)
        if not table[slot, _STATE]:
            if used == room:
                return i, taken, used
            table[slot, _PRODUCER] = producer_id
            table[slot, _STATE] = _USED
            used += 1
        kind = rows[i, KIND_WORD] >> KIND_SHIFT
        entry, state = table[slot, _ENTRY], table[slot, _STATE]
        kept_entries[i] = NONE
        if kind == DATA:
            verdicts[i] = entry > 0
            table[slot, _STATE] = state | (_WITH_DATA if entry else _COMMITTED)
        elif kind == ABORT:
            keeps = entry > 0 and state & _WITH_DATA != 0
            verdicts[i] = not keeps
            if keeps:
                kept_entries[i] = entry - 1
                table[slot, _STATE] = state & ~_WITH_DATA
            table[slot, _ENTRY] = 0
        elif kind == COMMIT:
            verdicts[i] = state & _COMMITTED == 0
            table[slot, _STATE] = state & ~_COMMITTED
        else:
            verdicts[i] = kind == EMPTY_CONTROL
    return rows.shape[0], taken, used


@kernel
def flags_in_ranges(rows: Int64Array, ranges: Int64Array, flags: Any) -> None:
    """Fill flags (uint8) with those that ranges give to the data batches among rows, or 0.

    ranges: (m, RANGE_COLUMNS), as the scan goes by them.
    """
    for i in range(rows.shape[0]):
        flags[i] = 0
        if rows[i, KIND_WORD] >> KIND_SHIFT == DATA:
            flags[i] = flags_at(ranges, rows[i, PRODUCER_ID_WORD], rows[i, LAST_OFFSET_WORD])


@kernel
def flags_at(ranges: Int64Array, producer_id: int, last_offset: int) -> int:
    """Return the flags of the range of a producer in which an offset lies, or 0."""
    low, high = 0, ranges.shape[0]  # the first range after (producer id, last offset)
    while low < high:
        middle = (low + high) >> 1
        first = ranges[middle, 0]
        if first < producer_id or (first == producer_id and ranges[middle, 1] <= last_offset):
            low = middle + 1
        else:
            high = middle
    if low and ranges[low - 1, 0] == producer_id and last_offset <= ranges[low - 1, 2]:
        return int(ranges[low - 1, 3])
    return 0


@kernel
def judge_entries(
    entries: tuple[Int64Array, Int64Array, int], table: Int64Array, end: int, markers: Int64Array
) -> int:
    """Note what is known of the producer of each entry that ends below end, and was not judged.

    entries: all of them; their numbers by rising last offset; how many of these are judged.
    Returns how many are judged then.
    """
    rows, order, judged = entries
    while judged < order.shape[0]:
        number = order[judged]
        if rows[number, ENTRY_LAST] >= end:
            break
        slot = _slot_of(table, rows[number, ENTRY_PRODUCER])
        state = table[slot, _STATE]
        markers[number, MARKER_OWNER] = NONE
        markers[number, MARKER_BEFORE] = table[slot, _LAST_MARKER] if state & _HAS_MARKER else NONE
        markers[number, FIRST_DATA] = table[slot, _FIRST_DATA] if state & _HAS_DATA else NONE
        markers[number, IS_KNOWN] = 0
        judged += 1
    return judged


@kernel
def follow_markers(
    batches: tuple[Int64Array, int],
    entries: tuple[Int64Array, Int64Array, int],
    known: tuple[Int64Array, int],
    markers: Int64Array,
) -> tuple[int, int, int, int]:
    """Hold entries against the markers that end their transactions.

    batches: as in follow_transactions. entries: as in judge_entries. known: the table, and how many
    producers it holds. markers: (entries, MARKER_COLUMNS): whose marker stands at an entry's last
    offset, its producer's marker before that, the first data after that one, and whether it is an
    abort marker of its producer.

    Returns how many batches are done, how many entries are judged, how many producers the table
    holds, and before how many of these abort markers there is data that no entry covers.
    """
    rows, start = batches
    all_entries, order, judged = entries
    table, used = known
    room, unlisted = table.shape[0] // 2, 0
    for i in range(start, rows.shape[0]):
        kind = rows[i, KIND_WORD] >> KIND_SHIFT
        if kind not in (DATA, ABORT, COMMIT):
            continue
        producer_id = rows[i, PRODUCER_ID_WORD]
        slot = _slot_of(table, producer_id)
        if not table[slot, _STATE]:
            if used == room:
                return i, judged, used, unlisted
            table[slot, _PRODUCER] = producer_id
            table[slot, _STATE] = _USED
            used += 1
        if kind == DATA:
            offset = rows[i, BASE_OFFSET_WORD]
            judged = judge_entries((all_entries, order, judged), table, offset + 1, markers)
            if not table[slot, _STATE] & _HAS_DATA:
                table[slot, _STATE] |= _HAS_DATA
                table[slot, _FIRST_DATA] = offset
            continue
        offset = rows[i, LAST_OFFSET_WORD]
        judged = judge_entries((all_entries, order, judged), table, offset, markers)
        first = judged
        judged = judge_entries((all_entries, order, judged), table, offset + 1, markers)
        covered = not table[slot, _STATE] & _HAS_DATA
        for at in range(first, judged):
            number = order[at]
            markers[number, MARKER_OWNER] = producer_id
            if kind == ABORT and all_entries[number, ENTRY_PRODUCER] == producer_id:
                markers[number, IS_KNOWN] = 1
                covered |= all_entries[number, ENTRY_FIRST] <= table[slot, _FIRST_DATA]
        unlisted += kind == ABORT and not covered
        table[slot, _STATE] = _USED | _HAS_MARKER
        table[slot, _LAST_MARKER] = offset
    return rows.shape[0], judged, used, unlisted


@kernel
def with_open_data(table: Int64Array, producer_ids: Int64Array) -> int:
    """List the producers that have data after their last marker; how many there are."""
    count = 0
    for i in range(table.shape[0]):
        if table[i, _STATE] & _HAS_DATA:
            producer_ids[count] = table[i, _PRODUCER]
            count += 1
    return count


@kernel
def flag_aborted(rows: Int64Array, ranges: Int64Array) -> None:
    """Set the flags of the transactional data batches whose last offset lies in a range.

    rows: (n, BATCH_COLUMNS). ranges: (m, 4), as tasks.txn_batches lays them out.
    """
    if ranges.shape[0] == 0:
        return
    for i in range(rows.shape[0]):
        if rows[i, ATTRIBUTES] & (TRANSACTIONAL | CONTROL) != TRANSACTIONAL:
            continue
        rows[i, TXN_FLAGS] |= flags_at(ranges, rows[i, PRODUCER_ID], rows[i, LAST_OFFSET])


@kernel
def flag_discardable(rows: Int64Array, base_offsets: Int64Array) -> None:
    """Mark control batches as DISCARDABLE whose base offsets are among these, which ascend."""
    if base_offsets.shape[0] == 0:
        return
    for i in range(rows.shape[0]):
        if rows[i, ATTRIBUTES] & CONTROL == 0:
            continue
        at = np.searchsorted(base_offsets, rows[i, BASE_OFFSET])
        if at < base_offsets.shape[0] and base_offsets[at] == rows[i, BASE_OFFSET]:
            rows[i, TXN_FLAGS] |= DISCARDABLE


@kernel
def mark_read(rows: Int64Array, is_read: NDArray[np.bool_]) -> None:
    """Fill in whether there are records in each batch, and somebody looks at them.

    More records than bytes are not believed of an aborted batch either before they are seen.
    """
    for i in range(rows.shape[0]):
        count = rows[i, RECORDS_COUNT]
        is_unread = rows[i, TXN_FLAGS] & UNREAD == UNREAD and count <= rows[i, SIZE]
        is_read[i] = count > 0 and not is_unread


_ABORT, _COMMIT = int(ControlType.ABORT), int(ControlType.COMMIT)


@kernel
def note_txn_batches(
    rows: Int64Array, segment: int, now_ms: int, first_hashes: UInt64Array, out: Int64Array
) -> int:
    """Put the TXN_BATCH rows of transactional and control batches into out; return how many.

    first_hashes: of all records of the batches, as parse_records leaves them. out: as many rows of
    TXN_WORDS as there are batches.
    """
    count, record = 0, 0
    for i in range(rows.shape[0]):
        attributes, records = rows[i, ATTRIBUTES], rows[i, RECORDS_COUNT]
        if attributes & (TRANSACTIONAL | CONTROL) != 0:
            kind: Any = DATA
            if attributes & CONTROL != 0:
                kind = EMPTY_CONTROL
                if records > 0 and record < first_hashes.shape[0]:
                    control_type = first_hashes[record]
                    kind = OTHER_CONTROL
                    if control_type == _ABORT:
                        kind = ABORT
                    elif control_type == _COMMIT:
                        kind = COMMIT
            horizon: Any = NO_HORIZON
            if attributes & DELETE_HORIZON != 0:
                horizon = HORIZON_PASSED if rows[i, BASE_TIMESTAMP] <= now_ms else HORIZON_AHEAD
            out[count, POSITION_WORD] = rows[i, POSITION]
            out[count, BASE_OFFSET_WORD] = rows[i, BASE_OFFSET]
            out[count, LAST_OFFSET_WORD] = rows[i, LAST_OFFSET]
            out[count, PRODUCER_ID_WORD] = rows[i, PRODUCER_ID]
            out[count, KIND_WORD] = segment | kind << KIND_SHIFT
            out[count, COUNT_WORD] = records | horizon << KIND_SHIFT
            count += 1
        record += records
    return count
