"""Kafka's log directories as a data source of Spark: `spark.read.format("kafka-log")`.

    spark.dataSource.register(KafkaLogDataSource)
    spark.read.format("kafka-log").option("topics", "orders").load("/data/kafka")

The path is a log directory that no broker has open, or that of one partition, and is the same one
wherever tasks run; nothing is changed. Options, whose names have no case:

| option | |
|---|---|
| topics | names, by commas; none: all |
| startOffset, endOffset | the first offset that is wanted, and the first that is not |
| startTime, endTime | the same by time, in ms since 1970 or as `2026-05-01T00:00:00+00:00` |
| isolation | `read_uncommitted`, or `read_committed` as of a consumer |
| includeControl | `true`: with the markers of transactions |
| splitBytes | of segments, about so much to a task; 128 MiB |
| pushFilters | `true`: filters on topic, partition, offset, timestamp and timestamp_ms decide what
  is read. Spark asks for `spark.sql.python.filterPushdown.enabled` then |

The columns are those of `storage.arrow`, times in microseconds. Only
what a schema names is built: `.schema("key binary, value binary")`. Tasks send Arrow batches.
A log that is damaged fails the task with file and byte.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from storage.arrow.log_view import LogView, partition_dirs, splits_of
from storage.arrow.reading import RecordStream
from storage.arrow.selection import Selection
from storage.errors import UsageError
from storage.files.local import LOCAL

_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
SCHEMA = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestamp_ms", LongType()),
        StructField("timestamp_type", StringType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("headers", ArrayType(_HEADER)),
        StructField("leader_epoch", IntegerType()),
        StructField("producer_id", LongType()),
        StructField("producer_epoch", ShortType()),
        StructField("sequence", IntegerType()),
        StructField("is_transactional", BooleanType()),
        StructField("is_control", BooleanType()),
    ]
)
SPLIT_BYTES = 128 << 20
_SHOWN_TOPICS = 10
_TYPES = {field.name: field.dataType for field in SCHEMA}
_OPTIONS = frozenset(
    name.lower()
    for name in (
        *("path", "topics", "startOffset", "endOffset", "startTime", "endTime", "isolation"),
        *("includeControl", "splitBytes", "pushFilters"),
    )
)


class BadOptionError(UsageError):
    """An option or a schema of a read that makes no sense. Nothing was read."""


class KafkaLogDataSource(DataSource):
    """The data source `kafka-log`; options and columns are those of the module's docstring."""

    @classmethod
    def name(cls) -> str:
        return "kafka-log"

    def schema(self) -> StructType:
        return SCHEMA

    def reader(self, schema: StructType) -> "KafkaLogReader":
        """Raise BadOptionError."""
        options = {name.lower(): value for name, value in self.options.items()}
        pushes = _flag(options, "pushFilters")
        return (FilteredKafkaLogReader if pushes else KafkaLogReader)(schema, options)


class KafkaLogReader(DataSourceReader):
    """Reads what the options say."""

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        """Raise BadOptionError."""
        unknown = sorted(options.keys() - _OPTIONS)
        if unknown:
            raise BadOptionError(f"there is no option {', '.join(unknown)} of kafka-log")
        if not options.get("path"):
            raise BadOptionError("kafka-log needs the path of a log directory: load(path)")
        for field in schema:
            if _TYPES.get(field.name) != field.dataType:
                given = f"{field.name} {field.dataType.simpleString()}"
                raise BadOptionError(
                    f"kafka-log has no column {given}; it has {SCHEMA.simpleString()}"
                )
        self._path, self._schema = options["path"], schema
        self._named = self._topics = _names(options.get("topics"))
        self._partitions: frozenset[int] | None = None
        split_bytes = _integer(options, "splitBytes")
        self._split_bytes = SPLIT_BYTES if split_bytes is None else split_bytes
        if self._split_bytes <= 0:
            raise BadOptionError(f"option splitBytes of kafka-log: {self._split_bytes}")
        self._selection = _selection(schema, options)

    def partitions(self) -> Sequence[InputPartition]:
        """Return partitions: a part of a segment each, or small segments up to splitBytes.

        Raise BadOptionError for a topic that is not there, OSError, NotALogError, CorruptFileError.
        """
        tasks, left_bytes = list[list[LogView]](), 0
        for path in self._partition_dirs():
            for part in splits_of(path, self._selection, self._split_bytes, LOCAL):
                if not tasks or part.size_bytes > left_bytes:
                    tasks.append([])
                    left_bytes = self._split_bytes
                tasks[-1].append(part)
                left_bytes -= part.size_bytes
        return [InputPartition(tuple(parts)) for parts in tasks]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield Arrow batches. Raise OSError or CorruptFileError."""
        target = to_arrow_schema(self._schema, timezone="UTC")
        for part in partition.value or ():  # None is Spark's own, where there is no part at all
            for batch in RecordStream(part, self._selection):
                yield batch.cast(target)

    def _partition_dirs(self) -> list[str]:
        found = partition_dirs(self._path, LOCAL)
        self._require_topics({topic for topic, _ in found})
        return [
            path
            for (topic, partition), path in found.items()
            if (self._topics is None or topic in self._topics)
            and (self._partitions is None or partition in self._partitions)
        ]

    def _require_topics(self, existing: set[str]) -> None:
        missing = sorted((self._named or frozenset()) - existing)
        if missing:
            some = ", ".join(sorted(existing)[:_SHOWN_TOPICS]) or "no topic"
            more = ", …" if len(existing) > _SHOWN_TOPICS else ""
            raise BadOptionError(
                f"option topics of kafka-log: {self._path} has no topic {', '.join(missing)}; "
                f"it has {some}{more}. Nothing was read"
            )


class FilteredKafkaLogReader(KafkaLogReader):
    """A reader that skips the files and batches that Spark's filters exclude."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Read no more than the filters let through, as far as they are known here.

        Spark applies all of them once more.
        """
        for each in filters:
            column = getattr(each, "attribute", ())
            if isinstance(each, EqualTo | In) and column in (("topic",), ("partition",)):
                values = frozenset(each.value if isinstance(each, In) else (each.value,))
                self._only(column[0], values)
            elif column == ("offset",):
                self._bound(each, "offset", 1)
            elif column == ("timestamp",):
                self._bound(each, "ms", 1000)
            elif column == ("timestamp_ms",):
                self._bound(each, "ms", 1)
        return filters

    def _only(self, column: str, values: frozenset[Any]) -> None:
        if column == "topic":
            self._topics = values if self._topics is None else self._topics & values
        else:
            known = self._partitions
            self._partitions = values if known is None else known & values

    def _bound(self, each: Filter, what: str, units: int) -> None:
        """Narrow a range; `units` of the filter make one of the range (1000: µs to ms)."""
        if not isinstance(
            each, EqualTo | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual
        ):
            return
        value = _microseconds(each.value) if isinstance(each.value, datetime) else each.value
        start, end = (
            getattr(self._selection, f"start_{what}"),
            getattr(self._selection, f"end_{what}"),
        )
        if isinstance(each, GreaterThan | GreaterThanOrEqual | EqualTo):
            first = value // units
            if first > -(2**63):
                start = first if start is None else max(start, first)
        if isinstance(each, LessThan | LessThanOrEqual | EqualTo):
            behind = value // units + 1
            if behind < 2**63:
                end = behind if end is None else min(end, behind)
        self._selection = replace(self._selection, **{f"start_{what}": start, f"end_{what}": end})


def _selection(schema: StructType, options: Mapping[str, str]) -> Selection:
    isolation = options.get("isolation", "read_uncommitted")
    if isolation not in ("read_uncommitted", "read_committed"):
        raise BadOptionError(f"option isolation of kafka-log: {isolation!r}")
    return Selection(
        columns=schema.names,
        start_offset=_integer(options, "startOffset"),
        end_offset=_integer(options, "endOffset"),
        start_ms=_time(options, "startTime"),
        end_ms=_time(options, "endTime"),
        isolation="read_committed" if isolation == "read_committed" else "read_uncommitted",
        control=_flag(options, "includeControl"),
    )


def _names(value: str | None) -> frozenset[str] | None:
    if value is None:
        return None
    names = frozenset(name.strip() for name in value.split(",")) - {""}
    if not names:
        raise BadOptionError(f"option topics of kafka-log: {value!r} names no topic")
    return names


def _flag(options: Mapping[str, str], name: str) -> bool:
    value = options.get(name.lower(), "false").lower()
    if value not in ("true", "false"):
        raise BadOptionError(f"option {name} of kafka-log: {value!r}, expected true or false")
    return value == "true"


def _integer(options: Mapping[str, str], name: str) -> int | None:
    value = options.get(name.lower())
    try:
        return None if value is None else int(value)
    except ValueError as error:
        raise BadOptionError(f"option {name} of kafka-log: {value!r} is no integer") from error


def _time(options: Mapping[str, str], name: str) -> int | None:
    value = options.get(name.lower())
    if value is None or value.lstrip("-").isdigit():
        return None if value is None else int(value)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        problem = f"option {name} of kafka-log: {value!r} is neither ms nor a date and time"
        raise BadOptionError(problem) from error
    return -(-_microseconds(moment) // 1000)


def _microseconds(moment: datetime) -> int:
    """Since 1970; of a time without a zone as one of UTC."""
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
