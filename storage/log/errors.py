"""What the engine refuses, by Kafka's names: IllegalArgumentError is its IllegalArgumentException.

State that was changed before an error stays changed, as in Kafka; the docstrings of the operations
say where that matters. Source: Kafka, org.apache.kafka.common.errors and the engine's own.
"""

from collections.abc import Sequence
from typing import ClassVar

from storage.errors import LogCompactionError

_SHOWN_POSITIONS = 3  # of records, in a message


class LogError(LogCompactionError):
    """An operation of a log that was refused, or failed."""

    kafka_name: ClassVar[str]  # the simple name of the class of Kafka's exception

    kafka_cause: ClassVar[str | None] = None  # of its cause, where that has none here

    # where a log that is being loaded met it: base offset of the segment, position in its `.log`
    place: tuple[int, int] | None = None
    position: int | None = None  # of the batch that could not be read, where it is known

    def __init_subclass__(cls) -> None:
        if "kafka_cause" not in vars(cls):
            cls.kafka_name = cls.__name__.removesuffix("Error") + "Exception"


class IllegalArgumentError(LogError):
    """An argument that no caller may give."""


class IllegalStateError(LogError):
    """An operation that does not fit what went before."""


class UnsupportedOperationError(LogError):
    """An operation that Kafka's own classes cannot do with a batch."""


class NoSuchElementError(LogError):
    """Something that does not exist was asked for."""


class KafkaError(LogError):
    """An error for which Kafka has no more exact name."""


class KafkaStorageError(KafkaError):
    """The log directory is offline: an operation on its files failed, now or before."""


class BufferOverflowError(LogError):
    """An index that takes no more entries."""


class IndexOutOfBoundsError(LogError):
    """A field that would stand past the end of its message."""


class BufferUnderflowError(LogError):
    """Bytes that end too early."""


class CodecError(KafkaError):
    """Compressed bytes that cannot be decompressed; by an IOException of Kafka's codec."""

    kafka_name, kafka_cause = "KafkaException", "IOException"


class NumberFormatError(LogError):
    """A number in a file that is none, where Kafka does not expect it: no log manager starts."""


class ZipError(CodecError):
    """Bytes that gzip cannot decompress."""

    kafka_name, kafka_cause = "KafkaException", "ZipException"


class CutZipError(CodecError):
    """Bytes of gzip that end too early."""

    kafka_name, kafka_cause = "KafkaException", "EOFException"


class ZstdError(CodecError):
    """Bytes that zstd cannot decompress."""

    kafka_name, kafka_cause = "KafkaException", "ZstdIOException"


class CorruptRecordError(LogError):
    """Bytes that are no batch, or a batch whose checksum is wrong."""


class InvalidRecordError(LogError):
    """A batch that is framed well and holds what a log does not take."""


class InvalidTimestampError(LogError):
    """A record too far in the past or in the future, or with a time that the log gives itself."""


class RecordValidationError(LogError):
    """Some records of a batch were refused: `cause` is their error, `positions` which ones."""

    def __init__(self, cause: LogError, positions: Sequence[int]) -> None:
        super().__init__(cause, tuple(positions))
        self.cause, self.positions = cause, tuple(positions)

    def __str__(self) -> str:
        first, more = self.positions[:_SHOWN_POSITIONS], self.positions[_SHOWN_POSITIONS:]
        which = ", ".join(map(str, first)) + (f" and {len(more)} more" if more else "")
        noun = "record" if len(self.positions) == 1 else "records"
        return f"{noun} {which} of the batch: {self.cause}"


class RecordTooLargeError(LogError):
    """A batch larger than max.message.bytes."""


class RecordBatchTooLargeError(LogError):
    """More bytes at once than a segment takes."""


class UnsupportedForMessageFormatError(LogError):
    """A producer id or a transaction in a message format that has none."""


class OffsetOutOfRangeError(LogError):
    """An offset below the log start, or past the log end or the high watermark."""


class UnexpectedAppendOffsetError(LogError):
    """A follower's batch below the log end offset."""


class OffsetsOutOfOrderError(LogError):
    """A follower's batches whose offsets do not rise."""


class InvalidOffsetError(LogError):
    """An index entry that is not above the one before."""


class IndexOffsetOverflowError(LogError):
    """An offset too far from the base offset of its segment for an index entry."""


class LogSegmentOffsetOverflowError(LogError):
    """An offset too far from the base offset of its segment."""

    def __init__(self, base_offset: int, offset: int) -> None:
        super().__init__(f"offset {offset} does not fit a segment with base offset {base_offset}")
        self.base_offset = base_offset


class CorruptIndexError(LogError):
    """An index that cannot be one of its segment."""


class OutOfOrderSequenceError(LogError):
    """A batch of a producer that does not follow its last one."""


class InvalidProducerEpochError(LogError):
    """A producer that a newer one has taken the place of."""


class InvalidTxnStateError(LogError):
    """A batch that the producer's transaction does not allow."""


class TransactionCoordinatorFencedError(LogError):
    """A marker of a transaction coordinator that a newer one has taken the place of."""
