"""Columns of a table as the kernel that makes batches takes them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from storage.arrow.batch_kernel import Pieces, Records
from storage.arrow.selection import COLUMNS
from storage.errors import LogCompactionError
from storage.formats.batch_header import NO_TIMESTAMP

_NO_ENDS = np.zeros(1, np.int32)
_NO_ENDS.setflags(write=False)


class BadTableError(LogCompactionError):
    """A table from which no records can be made. Nothing was appended."""


def check_table(table: object) -> None:
    """Raise BadTableError where it is none of Arrow's, or its columns make no records."""
    if not isinstance(table, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        raise BadTableError(
            f"table: expected a pyarrow Table, RecordBatch or RecordBatchReader, not "
            f"{type(table).__name__}; pyarrow.Table.from_pandas makes one of a pandas frame"
        )
    _check_columns(table.schema)


def _check_columns(schema: pa.Schema) -> None:
    """Raise BadTableError where a column has no meaning, or there is neither key nor value."""
    unknown = [name for name in schema.names if name not in COLUMNS]
    if unknown or len(set(schema.names)) < len(schema.names):
        raise BadTableError(
            f"columns {', '.join(schema.names)}: there may be each of {', '.join(COLUMNS)} once; "
            "key, value, timestamp_ms, timestamp and headers are taken, the others are given by "
            "the log"
        )
    if "key" not in schema.names and "value" not in schema.names:
        raise BadTableError("there is neither a column `key` nor a column `value`")


def records_of(batch: pa.RecordBatch, now_ms: int) -> Records:
    """The columns of a batch. now_ms: the time of each record where there is no such column.

    `timestamp_ms` decides where there is also a `timestamp`, which cannot show every time. Raise
    BadTableError where a column is of no type that fits, or a header has no key.
    """
    count = batch.num_rows
    names = batch.schema.names
    timestamps = np.full(count, now_ms, np.int64)
    for name in ("timestamp_ms", "timestamp"):
        if name in names:
            timestamps = _timestamps(batch.column(name), name)
            break
    nothing = pa.nulls(count, pa.binary())
    keys = batch.column("key") if "key" in names else nothing
    values = batch.column("value") if "value" in names else nothing
    ends, header_keys, header_values = _NO_ENDS, pa.nulls(0), pa.nulls(0)
    if "headers" in names:
        ends, header_keys, header_values = _headers(batch.column("headers"))
    if header_keys.null_count:
        raise BadTableError("column headers: a header without a key")
    return Records(
        timestamps=_read_only(timestamps),
        keys=_pieces(keys, "key"),
        values=_pieces(values, "value"),
        header_ends=ends,
        header_keys=_pieces(header_keys, "headers"),
        header_values=_pieces(header_values, "headers"),
    )


def _cast(column: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise BadTableError(f"column {name} of type {column.type}: {error}") from error


def _timestamps(column: pa.Array, name: str) -> Any:
    if not pa.types.is_integer(column.type):
        unit = pa.timestamp("ms", getattr(column.type, "tz", None))
        column = _cast(column, unit, name)
    return _cast(column, pa.int64(), name).fill_null(NO_TIMESTAMP).to_numpy()


def _pieces(column: pa.Array, name: str) -> Pieces:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    column = _cast(column, pa.binary(), name)
    _, ends, data = column.buffers()
    held = _NO_ENDS
    if ends is not None and len(column):
        held = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
    return Pieces(
        held,
        np.frombuffer(data or b"", np.uint8),
        _read_only(column.is_valid().to_numpy(zero_copy_only=False)),
    )


def _read_only(array: Any) -> Any:
    """As Arrow's own buffers are: the kernels are compiled for these alone."""
    array.setflags(write=False)
    return array


def _headers(column: pa.Array) -> tuple[Any, pa.Array, pa.Array]:
    """Where the headers of each record end, and the keys and values of all."""
    if pa.types.is_null(column.type):
        return _NO_ENDS, pa.nulls(0), pa.nulls(0)
    kind = getattr(column.type, "value_type", pa.null())
    if not pa.types.is_struct(kind) or sorted(f.name for f in kind) != ["key", "value"]:
        raise BadTableError(
            f"column headers of type {column.type}: expected a list of (key, value), by these names"
        )
    try:
        lengths = compute.list_value_length(column).fill_null(0).to_numpy()
        headers = compute.list_flatten(column)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise BadTableError(f"column headers of type {column.type}: {error}") from error
    parts = dict(zip((field.name for field in kind), headers.flatten(), strict=True))
    ends = np.concatenate((_NO_ENDS, lengths.cumsum())).astype(np.int32)
    return _read_only(ends), parts["key"], parts["value"]


def chunks(source: pa.Table | pa.RecordBatch | pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The batches of whatever holds a table."""
    if isinstance(source, pa.RecordBatch):
        return iter([source])
    return iter(source.to_batches() if isinstance(source, pa.Table) else source)
