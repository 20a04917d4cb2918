"""Reads the records of a log into Arrow: all at once, or batch by batch in bounded memory.

An Arrow batch is made of a run of log batches: buffers with room for all that the run can hold, a
kernel that fills them, and arrays around what it filled. Arrays keep no more than they hold: where
less than half of a buffer was filled, its content is copied and the buffer is freed.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storage.arguments import path_of
from storage.arrow.batch_runs import BatchRun, RunReader, Wanted
from storage.arrow.log_view import LogView, view_of_directory, view_of_log
from storage.arrow.record_kernel import Columns, Parts, Range, fill_columns
from storage.arrow.selection import (
    END_TIMESTAMP_MS,
    EVERYTHING,
    HEADERS_TYPE,
    MIN_TIMESTAMP_MS,
    SCHEMA,
    BadSelectionError,
    Selection,
)
from storage.errors import CorruptFileError, shown
from storage.files.local import LOCAL
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
from storage.log.log import Log

JOINED_ROWS, JOINED_BYTES = 32_768, 4 << 20  # of an Arrow batch that smaller ones are joined to
STOPPED_AT = b"stopped_at"  # in the metadata of a table: where until_damage has ended it, and why

Source = Log | LogView | str | os.PathLike[str]


class RecordStream:
    """The Arrow batches of a log, as they are asked for; at most some MiB each, or one log batch.

    Small ones, as of small segments or of batches whose codecs change, are joined.

    `stopped_at` says, once all have come, at what damage the log was left (`until_damage`).
    """

    def __init__(self, source: Source, selection: Selection = EVERYTHING) -> None:
        """Look at the log as it is now. Raise NotALogError, CorruptFileError or OSError."""
        if not isinstance(selection, Selection):
            raise BadSelectionError(f"selection={shown(selection)}: expected a Selection")
        self._selection, self.schema = selection, selection.schema
        self._view = _view(source, selection)
        self.stopped_at: CorruptFileError | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches, each with a record at least.

        Raise CorruptFileError or OSError after the last sound one.
        """
        try:
            yield from _joined(_batches(self._view, self._selection))
        except CorruptFileError as error:
            if not self._selection.until_damage:
                raise
            self.stopped_at = error

    def reader(self) -> pa.RecordBatchReader:
        """Return a reader for what takes Arrow streams: DuckDB, Polars, a Parquet writer."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))


def read_table(source: Source, selection: Selection = EVERYTHING) -> pa.Table:
    """Give the records of a log, of one partition, as a table.

    source: an open Log, or the directory of a partition that no broker has open, of which nothing
    is changed; or a LogView of either. Raise what RecordStream raises.
    """
    stream = RecordStream(source, selection)
    table = pa.Table.from_batches(list(stream), stream.schema)
    if stream.stopped_at is None:
        return table
    return table.replace_schema_metadata({STOPPED_AT: str(stream.stopped_at).encode()})


def _view(source: Source, selection: Selection) -> LogView:
    if isinstance(source, LogView):
        return source
    if isinstance(source, Log):
        return view_of_log(source, selection)
    if not isinstance(source, str | os.PathLike):
        expected = "expected an open Log, a LogView or the directory of a partition"
        raise BadSelectionError(f"source={shown(source)}: {expected}")
    return view_of_directory(path_of("source", source), selection, LOCAL)


def _batches(view: LogView, selection: Selection) -> Iterator[pa.RecordBatch]:
    wanted = _narrowed(selection.range, view)
    maker = BatchMaker(view.topic, view.partition, selection, wanted)
    refused_bits = 0 if selection.control else CONTROL
    chosen = Wanted(range=wanted, refused_bits=refused_bits, aborted=view.aborted)
    reader = RunReader(chosen, selection.max_bytes)
    for stretch in view.stretches:
        if reader.is_done:
            return
        with view.files.open(stretch.path) as file:
            for run in reader.runs(stretch, file.read):
                filled = maker.make(run)
                if filled.batch.num_rows:
                    yield filled.batch
                if filled.problem is not None:
                    raise filled.problem


def _joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join batches of few records with those that follow.

    What came before an error is given before the error is raised.
    """
    held = list[pa.RecordBatch]()
    rows = size_bytes = 0
    try:
        for batch in batches:
            rows += batch.num_rows
            size_bytes += batch.nbytes
            if held and (rows > JOINED_ROWS or size_bytes > JOINED_BYTES):
                yield _one(held)
                rows, size_bytes = batch.num_rows, batch.nbytes
            held.append(batch)
    except (CorruptFileError, OSError):
        if held:
            yield _one(held)
        raise
    if held:
        yield _one(held)


def _one(held: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Join batches, and forget them before the result is used."""
    batch = held[0] if len(held) == 1 else pa.concat_batches(held)
    held.clear()
    return batch


def _narrowed(wanted: Range, view: LogView) -> Range:
    return wanted._replace(
        first_offset=max(wanted.first_offset, view.first_offset),
        end_offset=min(wanted.end_offset, view.end_offset),
    )


_MIN_HEADER_BYTES = 2
_TIMESTAMP_TYPES = pa.array(["CreateTime", "LogAppendTime"])
_TIMESTAMP = SCHEMA.field("timestamp").type


class Filled(NamedTuple):
    """The records of a run, and what is wrong after them."""

    batch: pa.RecordBatch
    problem: CorruptFileError | None


class _Records(NamedTuple):
    """What the kernel has made of a run."""

    columns: Columns
    size: int
    headers: int
    run: BatchRun

    @property
    def batches(self) -> NDArray[np.int32]:
        """The number of each record's batch."""
        return self.columns.batches[: self.size]

    def of_batch(self, column: int) -> NDArray[np.int64]:
        """Return for each record what the row of its batch says."""
        found: NDArray[np.int64] = self.run.rows[:, column].take(self.batches)
        return found


class BatchMaker:
    """Makes Arrow batches of the columns that are wanted of one partition."""

    def __init__(self, topic: str, partition: int, selection: Selection, wanted: Range) -> None:
        self._topic, self._partition = pa.array([topic]), partition
        self._names, self._schema, self._wanted = selection.columns, selection.schema, wanted

    def make(self, run: BatchRun) -> Filled:
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

    def _room(self, run: BatchRun) -> Columns:
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
    """Allocate `count` values of `size` bytes in all; 0 and 0 for a column that is not wanted."""
    ends = np.empty(count + 1, np.int32)
    ends[0] = 0
    return Parts(ends, np.empty(size, np.uint8), np.zeros((count + 7) // 8, np.uint8))


def _filled(room: NDArray[Any], count: int) -> NDArray[Any]:
    """Return the first items of a buffer; a copy if they would keep much unused memory alive."""
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
    """Return keys as UTF-8; bytes that are not become U+FFFD, as in a Java client."""
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
    """Return sequences: they rise from that of the batch; 0 follows 2^31 - 1 (log-format F-4.6)."""
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
