"""Where the map of a round is full, if it takes no more than so many keys.

One task goes through the dirty range of a log in order, as Kafka's cleaner does. Only for rounds
that stop where it would (`RunOptions.map_capacity`): a map of ours has no limit.
Source: Kafka, Cleaner.buildOffsetMap; compaction C-7.5 to C-7.9.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cleaner_jobs.kernels.offset_map import table_slots
from cleaner_jobs.kernels.transaction_kernels import flag_aborted
from cleaner_jobs.messages import MapEnd, RoundSettings, Stretch
from cleaner_jobs.tasks.window_reader import RecordColumns, WindowReader, check_checksums, payloads
from cleaner_jobs.txn_batches import load_array
from storage.files.files import Disk
from storage.files.local import LOCAL
from storage.formats.batch_columns import (
    IN_MAP,
    LAST_OFFSET,
    RECORDS_COUNT,
    Int64Array,
    UInt64Array,
)
from storage.formats.batch_windows import Buffers, Payloads, Window
from storage.kernels.kernel import inlined, kernel

FIRST_SLOTS = 1 << 12


@inlined
def _add(table: UInt64Array, first: Any, second: Any) -> bool:
    """Put a key in, and say whether it is new. A slot of zeros is free."""
    mask = np.uint64(table.shape[0] - 1)
    slot = first & mask
    while True:
        if table[slot, 0] == 0 and table[slot, 1] == 0:
            table[slot, 0] = first
            table[slot, 1] = second
            return True
        if table[slot, 0] == first and table[slot, 1] == second:
            return False
        slot = (slot + np.uint64(1)) & mask


@kernel
def copy_keys(source: UInt64Array, target: UInt64Array) -> None:
    """Put all keys of one table into a larger one."""
    for i in range(source.shape[0]):
        if source[i, 0] != 0 or source[i, 1] != 0:
            _add(target, source[i, 0], source[i, 1])


@kernel
def fill_table(
    columns: Any, count: int, table: UInt64Array, keys: int, capacity: int
) -> tuple[int, int]:
    """Put the keys of records that belong in the map into table, until it holds capacity keys.

    keys: how many it holds. Returns how many it holds then, and the first record that came when it
    was full (C-7.7: also one whose key it holds), or -1.
    """
    first_hash, second_hash, _, states = columns
    for i in range(count):
        if states[i] & np.uint8(IN_MAP):
            if keys >= capacity:
                return keys, i
            if _add(table, first_hash[i], second_hash[i]):
                keys += 1
    return keys, -1


class _Full(NamedTuple):
    """The map was full: the offset that it covers last."""

    latest_offset: int


class _MapFilling:
    """A set of keys, and the last offset that a map of them covers."""

    def __init__(self, settings: RoundSettings, capacity: int, buffers: Buffers) -> None:
        self._columns = RecordColumns(settings, buffers)
        self._capacity, self._keys = capacity, 0
        self._table = np.zeros((FIRST_SLOTS, 2), np.uint64)
        self.latest_offset = -1

    def add(self, window: Window, run: Payloads, stretch: Stretch) -> _Full | None:
        columns = self._columns
        columns.filled = 0
        columns.parse(window, run, (stretch.first_dirty_offset, stretch.map_end_offset))
        rows = window.rows[run.first : run.end]
        self._make_room(columns.filled)
        held = columns.room_for(0)
        self._keys, stopped = fill_table(
            held, columns.filled, self._table, self._keys, self._capacity
        )
        if stopped >= 0:
            return _Full(self._latest_before(rows, held, stopped, stretch.first_dirty_offset))
        self._pass_batches(rows, stretch.first_dirty_offset)
        return None

    def _make_room(self, records: int) -> None:
        slots = table_slots(min(self._capacity, self._keys + records) + 1)
        if slots > len(self._table):
            larger = np.zeros((slots, 2), np.uint64)
            copy_keys(self._table, larger)
            self._table = larger

    def _pass_batches(self, rows: Int64Array, first_dirty_offset: int) -> None:
        """Whole batches were taken in, with or without records for the map (C-7.7)."""
        if len(rows) and rows[-1, LAST_OFFSET] >= first_dirty_offset:
            self.latest_offset = int(rows[-1, LAST_OFFSET])

    def _latest_before(
        self, rows: Int64Array, held: tuple[Any, ...], record: int, first_dirty_offset: int
    ) -> int:
        """Return the last offset put, or that of the batch before if it is later (C-7.7, C-7.8)."""
        ends = np.cumsum(rows[:, RECORDS_COUNT])
        batch = int(np.searchsorted(ends, record, side="right"))
        self._pass_batches(rows[:batch], first_dirty_offset)
        start = int(ends[batch] - rows[batch, RECORDS_COUNT])
        put = np.flatnonzero(held[3][start:record] & IN_MAP)
        return int(held[2][start + put[-1]]) if len(put) else self.latest_offset


def find_map_end(
    stretches: Sequence[Stretch],
    capacity: int,
    settings: RoundSettings,
    buffers: Buffers,
    disk: Disk = LOCAL,
) -> MapEnd:
    """Return where the map of one log ends.

    stretches: its dirty range, one for each segment, in order.
    """
    filling = _MapFilling(settings, capacity, buffers)
    for number, stretch in enumerate(stretches):
        if number:  # all below the segment is covered, gaps and all (C-7.9)
            filling.latest_offset = stretch.source.base_offset - 1
        full = _fill_from(stretch, filling, buffers, disk)
        if full is not None:
            return MapEnd(stretch.log_id, full.latest_offset + 1)
    return MapEnd(stretches[0].log_id, stretches[0].map_end_offset)


def _fill_from(
    stretch: Stretch, filling: _MapFilling, buffers: Buffers, disk: Disk
) -> _Full | None:
    aborted = load_array(stretch.aborted_file, disk) if stretch.aborted_file else None
    with WindowReader(stretch.source.path, stretch.source.base_offset, buffers, disk) as reader:
        reader.check_planned(stretch.source)
        for window in reader.windows(stretch.start, stretch.end):
            check_checksums(window)
            if aborted is not None:
                flag_aborted(window.rows, aborted)
            for run in payloads(window, buffers):
                full = filling.add(window, run, stretch)
                if full is not None:
                    reader.check_unchanged(stretch.source)
                    return full
        reader.check_unchanged(stretch.source)
    return None
