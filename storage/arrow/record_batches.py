"""Arrow batches of runs of log batches: buffers for the kernel, and arrays around what it filled.

The kernel needs room for all that a run can hold. Arrays keep no more than they hold: where less
than half of a buffer was filled, its content is copied and the buffer is freed.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storage.arrow.batch_runs import Run
from storage.arrow.record_kernel import Columns, Parts, Range, fill_columns
from storage.arrow.selection import (
    END_TIMESTAMP_MS,
    HEADERS_TYPE,
    MIN_TIMESTAMP_MS,
    SCHEMA,
    Selection,
)
from storage.errors import CorruptFileError
from storage.formats.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    LEGACY,
    MAGIC_ZERO,
    OK,
    POSITION,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORDS_COUNT,
    problem_text,
)
from storage.formats.batch_header import (
    CONTROL,
    LEADER_EPOCH_AT,
    LEADER_EPOCH_BYTES,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    TRANSACTIONAL,
)

_MIN_HEADER_BYTES = 2
_TIMESTAMP_TYPES = pa.array(["CreateTime", "LogAppendTime"])
_TIMESTAMP = SCHEMA.field("timestamp").type


class Filled(NamedTuple):
    """The records of a run, and what is wrong behind them."""

    batch: pa.RecordBatch
    problem: CorruptFileError | None


class _Records(NamedTuple):
    """What the kernel has made of a run."""

    columns: Columns
    size: int
    headers: int
    run: Run

    @property
    def batches(self) -> NDArray[np.int32]:
        """The number of each record's batch."""
        return self.columns.batches[: self.size]

    def of_batch(self, column: int) -> NDArray[np.int64]:
        """For each record what the row of its batch says."""
        found: NDArray[np.int64] = self.run.rows[:, column].take(self.batches)
        return found


class BatchMaker:
    """Makes Arrow batches of the columns that are wanted of one partition."""

    def __init__(self, topic: str, partition: int, selection: Selection, wanted: Range) -> None:
        self._topic, self._partition = pa.array([topic]), partition
        self._names, self._schema, self._wanted = selection.columns, selection.schema, wanted

    def make(self, run: Run) -> Filled:
        """The records that are wanted of a run, up to the first batch that is not sound."""
        columns = self._room(run)
        count, headers, bad, code, detail = fill_columns(
            run.payloads, run.bounds, run.rows, run.chosen, self._wanted, columns
        )
        problem = None
        if code != OK:
            count = int(np.searchsorted(columns.batches[:count], bad))  # of the batches before
            if len(columns.header_ends) > 1:
                headers = int(columns.header_ends[count])
            position = int(run.rows[bad, POSITION])
            problem = CorruptFileError(run.path, position, problem_text(code, detail))
        records = _Records(columns, count, headers, run)
        arrays = [self._array(name, records) for name in self._names]
        return Filled(pa.RecordBatch.from_arrays(arrays, schema=self._schema), problem)

    def _room(self, run: Run) -> Columns:
        count = int(run.rows[run.chosen, RECORDS_COUNT].sum())
        spans = run.bounds[run.chosen]
        size = int((spans[:, 1] - spans[:, 0]).sum())
        wants_headers = "headers" in self._names
        headers = size // _MIN_HEADER_BYTES if wants_headers else 0
        return Columns(
            offsets=np.empty(count, np.int64),
            timestamps=np.empty(count, np.int64),
            batches=np.empty(count, np.int32),
            keys=_parts(count, size) if "key" in self._names else _parts(0, 0),
            values=_parts(count, size) if "value" in self._names else _parts(0, 0),
            header_ends=np.zeros(count + 1 if wants_headers else 1, np.int32),
            header_keys=_parts(headers, size if wants_headers else 0),
            header_values=_parts(headers, size if wants_headers else 0),
        )

    def _array(self, name: str, records: _Records) -> pa.Array:
        if name == "topic":
            names = pa.DictionaryArray.from_arrays(_zeros(records.size, np.int8), self._topic)
            return names.dictionary_decode()
        if name == "partition":
            return pa.array(np.full(records.size, self._partition, np.int32))
        return _MAKERS[name](records)


def _zeros(count: int, kind: type[np.generic]) -> pa.Array:
    return pa.array(np.zeros(count, kind))


def _parts(count: int, size: int) -> Parts:
    """Room for so many pieces of so many bytes in all; for one that is not filled for none."""
    ends = np.empty(count + 1, np.int32)
    ends[0] = 0
    return Parts(ends, np.empty(size, np.uint8), np.zeros((count + 7) // 8, np.uint8))


def _filled(room: NDArray[Any], count: int) -> NDArray[Any]:
    """The first items of a buffer; a copy of them where they would keep much unused room alive."""
    filled = room[:count]
    return filled.copy() if 2 * count < len(room) else filled


def _binary(parts: Parts, count: int) -> pa.Array:
    buffers = [
        pa.py_buffer(_filled(parts.validity, (count + 7) // 8)),
        pa.py_buffer(_filled(parts.ends, count + 1)),
        pa.py_buffer(_filled(parts.data, int(parts.ends[count]))),
    ]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def _offsets(records: _Records) -> pa.Array:
    return pa.array(_filled(records.columns.offsets, records.size))


def _timestamps(records: _Records) -> pa.Array:
    """Null where a reader may have no such date; `timestamp_ms` has every time."""
    times = records.columns.timestamps[: records.size]
    is_date = (times >= MIN_TIMESTAMP_MS) & (times < END_TIMESTAMP_MS) & (times != NO_TIMESTAMP)
    return pa.array(times, pa.int64(), mask=~is_date).view(_TIMESTAMP)


def _timestamps_ms(records: _Records) -> pa.Array:
    times = records.columns.timestamps[: records.size]
    return pa.array(times, pa.int64(), mask=times == NO_TIMESTAMP)


def _timestamp_types(records: _Records) -> pa.Array:
    attributes = records.of_batch(ATTRIBUTES)
    kinds = (attributes & LOG_APPEND_TIME != 0).astype(np.int8)
    kinds = pa.array(kinds, mask=attributes & MAGIC_ZERO != 0)
    return pa.DictionaryArray.from_arrays(kinds, _TIMESTAMP_TYPES).dictionary_decode()


def _keys(records: _Records) -> pa.Array:
    return _binary(records.columns.keys, records.size)


def _values(records: _Records) -> pa.Array:
    return _binary(records.columns.values, records.size)


def _headers(records: _Records) -> pa.Array:
    columns, count = records.columns, records.headers
    keys = _text(_binary(columns.header_keys, count))
    values = _binary(columns.header_values, count)
    fields = list(HEADERS_TYPE.value_type)
    ends = pa.py_buffer(_filled(columns.header_ends, records.size + 1))
    headers = pa.StructArray.from_arrays([keys, values], fields=fields)
    return pa.Array.from_buffers(HEADERS_TYPE, records.size, [None, ends], children=[headers])


def _text(keys: pa.Array) -> pa.Array:
    """As UTF-8; what is none is read as a Java client does, by U+FFFD."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([key.decode(errors="replace") for key in keys.to_pylist()], pa.string())


def _leader_epochs(records: _Records) -> pa.Array:
    run = records.run
    headers_at = run.rows[:, POSITION] - run.window_position
    bytes_at = headers_at[:, None] + LEADER_EPOCH_AT + np.arange(LEADER_EPOCH_BYTES)
    epochs = run.window[bytes_at].view(">i4")[:, 0].astype(np.int32)
    epochs[run.rows[:, ATTRIBUTES] & LEGACY != 0] = -1
    return _nullable(epochs.take(records.batches))


def _nullable(numbers: NDArray[np.signedinteger[Any]]) -> pa.Array:
    return pa.array(numbers, mask=numbers < 0)


def _producer_ids(records: _Records) -> pa.Array:
    return _nullable(records.of_batch(PRODUCER_ID))


def _producer_epochs(records: _Records) -> pa.Array:
    return _nullable(records.of_batch(PRODUCER_EPOCH).astype(np.int16))


def _sequences(records: _Records) -> pa.Array:
    """Those of a batch rise from its own on; after 2^31 - 1 comes 0 (log-format F-4.6)."""
    base = records.of_batch(BASE_SEQUENCE)
    deltas = records.columns.offsets[: records.size] - records.of_batch(BASE_OFFSET)
    sequences = np.where(base < 0, -1, (base + deltas) % 2**31).astype(np.int32)
    return _nullable(sequences)


def _bits(bit: int) -> Callable[[_Records], pa.Array]:
    return lambda records: pa.array(records.of_batch(ATTRIBUTES) & bit != 0)


_MAKERS: dict[str, Callable[[_Records], pa.Array]] = {
    "offset": _offsets,
    "timestamp": _timestamps,
    "timestamp_ms": _timestamps_ms,
    "timestamp_type": _timestamp_types,
    "key": _keys,
    "value": _values,
    "headers": _headers,
    "leader_epoch": _leader_epochs,
    "producer_id": _producer_ids,
    "producer_epoch": _producer_epochs,
    "sequence": _sequences,
    "is_transactional": _bits(TRANSACTIONAL),
    "is_control": _bits(CONTROL),
}
