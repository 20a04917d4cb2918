"""Filters the Arrow batches of a log, and gives them as rows or writes them as Parquet."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from compactor.offline_log.open_log import ViewedLog
from compactor.offline_log.record_filter import ReadRecord, RecordFilter
from compactor.settings.rules import Isolation
from storage.arrow.reading import RecordStream
from storage.arrow.selection import SCHEMA, Selection
from storage.files.files import Disk
from storage.files.local import LOCAL

_ROW_COLUMNS = ("offset", "timestamp_ms", "timestamp_type", "key", "value", "headers")
ROW_GROUP_ROWS, ROW_GROUP_BYTES = 100_000, 64 << 20  # of Parquet: a group ends at either
ROWS_AT_ONCE = 1000  # shown before the next are looked at


def batches_of(
    view: ViewedLog, wanted: RecordFilter, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield Arrow batches. Raise CorruptFileError after the last sound record before damage."""
    log, is_committed = view.log, wanted.isolation is Isolation.COMMITTED
    end = wanted.end_offset
    if wanted.isolation is Isolation.HIGH_WATERMARK:
        replicated = log.offset_snapshot().high_watermark.offset  # where a batch begins, as a fetch
        end = replicated if end is None else min(end, replicated)
    selection = Selection(
        start_offset=wanted.start_offset,
        end_offset=end,
        isolation="read_committed" if is_committed else "read_uncommitted",
        columns=columns,
        max_bytes=wanted.max_bytes,
    )
    left = wanted.limit
    for batch in RecordStream(log, selection):
        found = batch
        if wanted.key is not None:
            found = found.filter(pc.equal(found.column("key"), wanted.key))
        if left is not None:
            found = found.slice(0, left)
            left -= found.num_rows
        if found.num_rows:
            yield found
        if left == 0:
            return


def rows_of(view: ViewedLog, wanted: RecordFilter) -> Iterator[list[ReadRecord]]:
    """Yield records, some at a time. Raise as `batches_of` does."""
    for batch in batches_of(view, wanted, _ROW_COLUMNS):
        for start in range(0, batch.num_rows, ROWS_AT_ONCE):
            part = batch.slice(start, ROWS_AT_ONCE)
            yield list(map(ReadRecord._make, zip(*map(_values, part.columns), strict=True)))


def _values(column: pa.Array) -> Any:
    """Return the values of a column of rows, numbers and bytes all at once."""
    if pa.types.is_list(column.type):
        if not len(column.flatten()):
            return ((),) * len(column)
        return [tuple((h["key"], h["value"]) for h in headers) for headers in column.to_pylist()]
    if pa.types.is_integer(column.type) and column.null_count:
        return column.to_pylist()  # Numpy would make floats of them
    return column.to_numpy(zero_copy_only=False).tolist()


def write_parquet(view: ViewedLog, wanted: RecordFilter, path: str, disk: Disk = LOCAL) -> int:
    """Write every column of the records to a file, whole or not at all; return how many.

    Raise as `batches_of` does, and OSError.
    """
    temporary, count = f"{path}.tmp", 0
    try:
        with (
            disk.open_named(
                temporary, "wb"
            ) as out,  # pyarrow encodes fewer names, and has words of its own
            pq.ParquetWriter(out, SCHEMA, compression="zstd") as writer,
        ):
            for group in _row_groups(batches_of(view, wanted, tuple(SCHEMA.names))):
                writer.write_table(group, row_group_size=group.num_rows)
                count += group.num_rows
        disk.sync_file(temporary)
        disk.rename(temporary, path)
    except BaseException:
        if disk.exists(temporary):
            disk.remove(temporary)
        raise
    return count


def _row_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield tables of the records or bytes of a usual row group."""
    held, rows, size_bytes = list[pa.RecordBatch](), 0, 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        size_bytes += batch.nbytes
        if rows >= ROW_GROUP_ROWS or size_bytes >= ROW_GROUP_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size_bytes = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)
