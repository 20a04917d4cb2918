"""What is read of a log, and in which columns it comes.

| column | type | |
|---|---|---|
| topic | dictionary of string | |
| partition | int32 | |
| offset | int64 | |
| timestamp | timestamp[ms, UTC] | null where the record has none |
| timestamp_type | dictionary of string | `CreateTime` or `LogAppendTime`; null in format v0 |
| key, value | binary | null where they are null: such a value is a tombstone |
| headers | list of (key string, value binary) | of the bytes of a key, U+FFFD for those not UTF-8 |
| leader_epoch | int32 | null where it is not known, as in formats v0 and v1 |
| producer_id | int64 | null where the producer was not idempotent, as the next two |
| producer_epoch | int16 | |
| sequence | int32 | |
| is_transactional, is_control | bool | |
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from storage.arrow.record_kernel import Range
from storage.errors import LogCompactionError

HEADERS_TYPE = pa.list_(
    pa.field(
        "item",
        pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())]),
        nullable=False,
    )
)
_NAME_TYPE = pa.dictionary(pa.int8(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("topic", _NAME_TYPE, nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("timestamp_type", _NAME_TYPE),
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


class BadSelectionError(LogCompactionError):
    """What was asked for makes no sense: a column that there is not, an unknown isolation."""

    reason_code = "wrong-usage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which records, and what of them.

    start_offset, start_ms: the first that is wanted; end_offset, end_ms: the first that is not.
    Times are looked at record by record, for they need not rise.
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
    start_ms: int | None = None
    end_ms: int | None = None
    isolation: Isolation = "read_uncommitted"
    columns: Sequence[str] = COLUMNS
    max_bytes: int | None = None
    control: bool = False
    until_damage: bool = False

    def __post_init__(self) -> None:
        """Raise BadSelectionError."""
        unknown = [name for name in self.columns if name not in COLUMNS]
        if isinstance(self.columns, str) or unknown or not self.columns:
            problem = f"columns {self.columns!r}: there are {', '.join(COLUMNS)}"
            raise BadSelectionError(problem)
        if len(set(self.columns)) < len(self.columns):
            raise BadSelectionError(f"columns {self.columns!r}: one of them comes twice")
        if self.isolation not in ("read_uncommitted", "read_committed"):
            raise BadSelectionError(f"isolation {self.isolation!r}")

    @property
    def is_committed(self) -> bool:
        return self.isolation == "read_committed"

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([SCHEMA.field(name) for name in self.columns])

    @property
    def range(self) -> Range:
        """Without any end where none is given."""
        return Range(
            _MIN if self.start_offset is None else self.start_offset,
            _MAX if self.end_offset is None else self.end_offset,
            _MIN if self.start_ms is None else self.start_ms,
            _MAX if self.end_ms is None else self.end_ms,
        )


EVERYTHING = Selection()
