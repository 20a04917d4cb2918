"""Appends tables to a log, in batches of v2 that are made of columns.

A batch ends where the next record would make it larger than asked for, or with a chunk of the
table. They are appended like those that a producer has sent, many at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import compute

from storage.arguments import count_of, require_a
from storage.arrow.batch_kernel import (
    COMPRESSED,
    END,
    MADE_COLUMNS,
    NO_ROOM,
    START,
    Pieces,
    RecordArrays,
    make_batches,
)
from storage.arrow.selection import COLUMNS
from storage.codecs.compression import Codec, compress
from storage.codecs.payload_kernels import max_payload_bytes, tools_of_thread
from storage.errors import LogCompactionError
from storage.formats.batch_columns import ByteArray, Int64Array
from storage.formats.batch_header import BATCH_HEADER_BYTES, NO_LEADER_EPOCH, NO_TIMESTAMP
from storage.formats.record_batch import HEADER, BatchHeader, seal
from storage.log.batches import in_memory
from storage.log.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    RecordValidationError,
)
from storage.log.log import Log
from storage.log.log_config import LogConfig
from storage.log.plain_append import BatchAppendError
from storage.log.validation import AppendRequest, LogAppendInfo

ROOM_BYTES = 4 << 20  # for batches that are made at once, unless one needs more
_MADE_AT_ONCE = 4096
_MAX_VARINT_BYTES = 10
_MAX_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """How records become batches.

    codec: of the batches, where the topic's compression.type leaves that to the producer; else they
    are compressed as the topic says, at its level.
    batch_bytes: of a batch at most, before it is compressed; one record may be larger.
    leader_epoch: of the batches.
    """

    codec: Codec = Codec.NONE
    batch_bytes: int = 64 << 10
    leader_epoch: int = 0

    def __post_init__(self) -> None:
        """Raise UsageError, which names the field."""
        require_a(Codec, "codec", self.codec, "a Codec")
        count_of("batch_bytes", self.batch_bytes, 1, _MAX_INT32)
        count_of("leader_epoch", self.leader_epoch, NO_LEADER_EPOCH, _MAX_INT32)


class Appended(NamedTuple):
    """What an append has come to."""

    first_offset: int | None  # None: there was no record
    next_offset: int  # the log's end then
    records: int
    batches: int


class AppendStoppedError(LogCompactionError):
    """An append that ended after a part of its table.

    cause: why. appended: what is in the log; `appended.records` records, from the first on, are.
    """

    def __init__(self, cause: Exception, appended: Appended) -> None:
        super().__init__(cause, appended)
        self.cause, self.appended = cause, appended

    def __str__(self) -> str:
        records = self.appended.records
        done = "1 record, which is" if records == 1 else f"{records} records, which are"
        return f"after {done} appended: {self.cause}"


def append_table(
    log: Log,
    table: pa.Table | pa.RecordBatch | pa.RecordBatchReader,
    batching: Batching = Batching(),
) -> Appended:
    """Append records to a log, as its leader would.

    table: with the columns key and value, or one of them, as binary or text; timestamp_ms or
    timestamp, a time or an integer of ms, null for a record without one (timestamp_ms decides where
    there are both, and the time of the append where there is neither); headers, as they are read.
    Other columns that `read` gives are left aside: the log gives offsets of its own.

    Raise BadTableError for other columns, RecordValidationError, RecordTooLargeError or
    RecordBatchTooLargeError for records that the log does not take, each before anything of its
    chunk was appended, and what Log.append_as_leader raises. Where records of the table were
    appended before, raise AppendStoppedError, which counts them.
    """
    require_a(Log, "log", log, "an open Log")
    require_a(Batching, "batching", batching, "a Batching")
    check_table(table)
    how = _compression(log.config, batching.codec)
    request = AppendRequest(leader_epoch=batching.leader_epoch, is_made_for_log=True)
    done = Appended(None, log.log_end_offset, 0, 0)
    cause: Exception | None = None
    try:
        for chunk in chunks(table):
            columns = records_of(chunk, log.now_ms)
            _check_records(columns, log, done.records)
            _check_sizes(columns, log.config, how, batching.batch_bytes)
            for data in _made(columns, how, batching.batch_bytes):
                done = _and(done, log.append_batches_as_leader(data, request))
    except BatchAppendError as error:
        done, cause = _and(done, error.appended), error.cause
    except Exception as error:
        cause = error
    if cause is None:
        return done
    if not done.records:
        raise cause
    raise AppendStoppedError(cause, done) from cause


def _and(done: Appended, more: Sequence[LogAppendInfo]) -> Appended:
    """Add the batches of one append to the count; they are consecutive in the log."""
    if not more:
        return done
    first, end = more[0].first_offset, more[-1].last_offset + 1
    return Appended(
        first_offset=first if done.first_offset is None else done.first_offset,
        next_offset=end,
        records=done.records + end - first,
        batches=done.batches + len(more),
    )


class _Compression(NamedTuple):
    codec: Codec
    level: int | None  # None: the codec's default

    @property
    def is_done_by_kernels(self) -> bool:
        """Otherwise each batch is compressed by itself."""
        return self.codec is not Codec.SNAPPY and self.level is None


def _compression(config: LogConfig, asked: Codec) -> _Compression:
    kind = config.compression_type
    if kind == "producer":
        return _Compression(asked, None)
    codec = Codec.NONE if kind == "uncompressed" else Codec[kind.upper()]
    return _Compression(codec, config.compression_level)


def _check_records(records: RecordArrays, log: Log, before: int) -> None:
    """Raise RecordValidationError where a leader would refuse records.

    before: how many there are in earlier chunks.
    """
    config = log.config
    if config.is_compacted and not records.keys.valid.all():
        no_key = InvalidRecordError("a record without a key, in a topic that is compacted")
        raise RecordValidationError(no_key, (before + np.flatnonzero(~records.keys.valid)).tolist())
    if config.is_log_append_time:
        return
    now_ms, times = log.now_ms, records.timestamps
    earliest = max(-(2**63), now_ms - config.message_timestamp_before_max_ms)
    latest = min(2**63 - 1, now_ms + config.message_timestamp_after_max_ms)
    refused = ((times < earliest) | (times > latest)) & (times != NO_TIMESTAMP)
    if refused.any():
        at = np.flatnonzero(refused)
        error = InvalidTimestampError(f"time {times[at[0]]} is too far from the clock")
        raise RecordValidationError(error, (before + at).tolist())


def _check_sizes(
    records: RecordArrays, config: LogConfig, how: _Compression, batch_bytes: int
) -> None:
    """Raise what the log would raise for a batch that is too large.

    Batches are made once more for this, unless no record is so large that one could be.
    """
    longest = max(batch_bytes, BATCH_HEADER_BYTES + _longest(records))
    longest = max_payload_bytes(longest) if how.codec else longest
    if longest <= min(config.max_message_bytes, config.segment_bytes):
        return
    for data in _made(records, how, batch_bytes):
        for size in (batch.size_bytes for batch in in_memory(data)):
            if size > config.max_message_bytes:
                most = f"max.message.bytes is {config.max_message_bytes}"
                raise RecordTooLargeError(f"a batch of {size} bytes; {most}")
            if size > config.segment_bytes:
                most = f"segment.bytes is {config.segment_bytes}"
                raise RecordBatchTooLargeError(f"a batch of {size} bytes; {most}")


def _longest(records: RecordArrays) -> int:
    """The bytes of the longest record, uncompressed, at most."""
    sizes = np.diff(records.keys.ends.astype(np.int64)) + np.diff(records.values.ends)
    if len(records.header_ends) > 1:
        at = records.header_ends
        sizes += 2 * _MAX_VARINT_BYTES * np.diff(at)
        for pieces in (records.header_keys, records.header_values):
            sizes += np.diff(pieces.ends.astype(np.int64)[at])
    return int(sizes.max(initial=0)) + 8 * _MAX_VARINT_BYTES


def _made(
    records: RecordArrays, how: _Compression, batch_bytes: int
) -> Iterator[bytes | memoryview]:
    """Yield the batches of records, some at a time; what is yielded holds until the next is."""
    room, first = max(ROOM_BYTES, 2 * batch_bytes), 0
    in_kernel = how.codec if how.is_done_by_kernels else Codec.NONE
    out, scratch = np.empty(2 * room, np.uint8), np.empty(room if in_kernel else 0, np.uint8)
    made = np.empty((_MADE_AT_ONCE, MADE_COLUMNS), np.int64)
    limits = int(in_kernel), batch_bytes
    while first < len(records.timestamps):
        first, count, code = make_batches(
            records, first, limits, (out, scratch), made, tools_of_thread()
        )
        if count:
            yield _bytes_of(out, made[:count], how)
        if code == NO_ROOM and not count:
            room *= 2
            out, scratch = (
                np.empty(2 * room, np.uint8),
                np.empty(room if in_kernel else 0, np.uint8),
            )


def _bytes_of(out: ByteArray, made: Int64Array, how: _Compression) -> bytes | memoryview:
    """Return the bytes of consecutive batches."""
    if how.is_done_by_kernels and made[:, COMPRESSED].all():
        return out.data[: made[-1, END]]
    return b"".join(_compressed(out, row, how) for row in made)


def _compressed(out: ByteArray, row: Int64Array, how: _Compression) -> bytes:
    batch = out[row[START] : row[END]].tobytes()
    if how.is_done_by_kernels and row[COMPRESSED]:
        return batch
    header = BatchHeader(*HEADER.unpack_from(batch))._replace(attributes=int(how.codec))
    return seal(header, compress(how.codec, batch[BATCH_HEADER_BYTES:], how.level))


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


def records_of(batch: pa.RecordBatch, now_ms: int) -> RecordArrays:
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
    return RecordArrays(
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
    """Make an array read-only, as Arrow's buffers are: the kernels are compiled for these alone."""
    array.setflags(write=False)
    return array


def _headers(column: pa.Array) -> tuple[Any, pa.Array, pa.Array]:
    """Return where the headers of each record end, and the keys and values of all."""
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
