"""What is read of a log, and in which columns it comes.

| column | type | |
|---|---|---|
| topic | string | |
| partition | int32 | |
| offset | int64 | |
| timestamp | timestamp[ms, UTC] | null without a time, and outside the years 1 to 9999; see below |
| timestamp_ms | int64 | the exact milliseconds since 1970; null where the record has none |
| timestamp_type | string | `CreateTime` or `LogAppendTime`; null in format v0 |
| key, value | binary | null where they are null: such a value is a tombstone |
| headers | list of (key string, value binary) | of the bytes of a key, U+FFFD for those not UTF-8 |
| leader_epoch | int32 | null where it is not known, as in formats v0 and v1 |
| producer_id | int64 | null where the producer was not idempotent, as the next two |
| producer_epoch | int16 | |
| sequence | int32 | |
| is_transactional, is_control | bool | |

`timestamp` is null in the first two days of the year 1 and in the last two of 9999, too: what shows
times in another zone than UTC has no date for some of them (Spark's `collect()`, even in UTC).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from storage.arrow.record_kernel import Range
from storage.errors import UsageError, shown

HEADERS_TYPE = pa.list_(
    pa.field(
        "item",
        pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())]),
        nullable=False,
    )
)
MIN_TIMESTAMP_MS = -62_135_424_000_000  # 0001-01-03T00:00:00Z
END_TIMESTAMP_MS = 253_402_128_000_000  # 9999-12-30T00:00:00Z, exclusive
SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("timestamp_ms", pa.int64()),
        pa.field("timestamp_type", pa.string()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS_TYPE, nullable=False),
        pa.field("leader_epoch", pa.int32()),
        pa.field("producer_id", pa.int64()),
        pa.field("producer_epoch", pa.int16()),
        pa.field("sequence", pa.int32()),
        pa.field("is_transactional", pa.bool_(), nullable=False),
        pa.field("is_control", pa.bool_(), nullable=False),
    ]
)
COLUMNS: tuple[str, ...] = tuple(SCHEMA.names)

Isolation = Literal["read_uncommitted", "read_committed"]

_MIN, _MAX = -(2**63), 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BadSelectionError(UsageError):
    """What was asked for makes no sense: a column that there is not, an unknown isolation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which records, and what of them.

    start_offset, start_ms: the first that is wanted; end_offset, end_ms: the first that is not. A
    time is in milliseconds since 1970, or a datetime (UTC where it has no zone); it is compared
    with each record's own, for times need not rise.
    isolation: as of a consumer. With read_committed, records of aborted transactions are left out,
    and the log ends at its last stable offset.
    columns: only these are built, in this order.
    max_bytes: of the log, as it stands in the files: no batch is begun beyond that, but one is read
    in any case.
    control: markers of transactions and other control records come, too; no consumer gives them.
    until_damage: a log that is damaged is read up to the last sound batch; else that is an error.
    """

    start_offset: int | None = None
    end_offset: int | None = None
    start_ms: int | datetime | None = None
    end_ms: int | datetime | None = None
    isolation: Isolation = "read_uncommitted"
    columns: Sequence[str] = COLUMNS
    max_bytes: int | None = None
    control: bool = False
    until_damage: bool = False

    def __post_init__(self) -> None:
        """Raise BadSelectionError, which names the parameter."""
        _check_columns(self.columns)
        if not isinstance(self.isolation, str) or self.isolation not in get_args(Isolation):
            expected = " or ".join(map(repr, get_args(Isolation)))
            raise BadSelectionError(f"isolation={shown(self.isolation)}: expected {expected}")
        for name in ("start_offset", "end_offset", "max_bytes"):
            _require_integer(name, getattr(self, name))
        for name in ("start_ms", "end_ms"):
            value = getattr(self, name)
            if not isinstance(value, datetime):
                _require_integer(name, value, "an integer or a datetime")
        for name in ("control", "until_damage"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise BadSelectionError(f"{name}={shown(value)}: expected True or False")

    @property
    def is_committed(self) -> bool:
        return self.isolation == "read_committed"

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([SCHEMA.field(name) for name in self.columns])

    @property
    def range(self) -> Range:
        """The range of records, without an end where the selection names none."""
        return Range(
            _MIN if self.start_offset is None else self.start_offset,
            _MAX if self.end_offset is None else self.end_offset,
            _MIN if self.start_ms is None else _milliseconds(self.start_ms),
            _MAX if self.end_ms is None else _milliseconds(self.end_ms) - 1,
        )


def _check_columns(columns: object) -> None:
    there_are = f"expected a list of some of {', '.join(COLUMNS)}"
    if not isinstance(columns, Sequence) or isinstance(columns, str | bytes) or not columns:
        raise BadSelectionError(f"columns={shown(columns)}: {there_are}")
    unknown = [name for name in columns if not isinstance(name, str) or name not in COLUMNS]
    if unknown:
        raise BadSelectionError(f"columns: there is no column {shown(unknown[0])}; {there_are}")
    if len(set(columns)) < len(columns):
        raise BadSelectionError(f"columns={shown(columns)}: one of them comes twice")


def _require_integer(name: str, value: object, expected: str = "an integer") -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise BadSelectionError(f"{name}={shown(value)}: expected {expected}")
    if not _MIN < value <= _MAX:
        raise BadSelectionError(f"{name}={shown(value)}: does not fit in 64 bits")


def _milliseconds(time: int | datetime) -> int:
    """The first whole millisecond that is not before a time."""
    if not isinstance(time, datetime):
        return int(time)
    moment = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return -((_EPOCH - moment) // timedelta(milliseconds=1))


EVERYTHING = Selection()
