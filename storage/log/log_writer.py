"""Writes genuine partitions and log directories, as a broker leaves them after a clean shutdown.

    with LogDirWriter("/data/kafka", cluster_id="demo") as log_dir:
        log = log_dir.create("prices", 0, LogSettings(segment_bytes=1 << 20))
        log.append([Message(b"key", b"value", timestamp=1700000000000)], Codec.LZ4)

Only new partitions, and data of plain or idempotent producers: no transactions. Segments roll by
F-12.7, a snapshot of the producers is taken at each roll and at the end (F-14.3). Source: Kafka,
UnifiedLog.append, maybeRoll, LogSegment.shouldRoll, LogManager.shutdown.
"""

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Self

from storage.codecs.compression import Codec
from storage.file_names import SNAPSHOT, file_name
from storage.files import filesystem
from storage.formats import (
    checkpoint,
    clean_shutdown,
    leader_epoch_checkpoint,
    meta_properties,
    partition_metadata,
    producer_snapshot,
)
from storage.formats.batch_header import BATCH_HEADER_BYTES, LOG_APPEND_TIME
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT, EpochEntry
from storage.formats.meta_properties import MetaProperties
from storage.formats.partition_metadata import PARTITION_METADATA, PartitionMetadata
from storage.formats.producer_snapshot import ProducerEntry
from storage.formats.record import Record
from storage.formats.record_batch import (
    BatchHeader,
    BatchOptions,
    decode_header,
    encode_batch,
    seal,
)
from storage.log.segment_writer import SegmentWriter

_DAY_MS = 24 * 60 * 60 * 1000
_ID_NAMESPACE = uuid.UUID(
    "6f1c6b8e-3f0a-5a7e-9d53-4c1f0e6d2b90"
)  # for ids that are the same each time


class Message(NamedTuple):
    """A record that has no offset yet."""

    key: bytes | None
    value: bytes | None
    timestamp: int  # ms
    headers: tuple[tuple[bytes, bytes | None], ...] = ()


class Producer(NamedTuple):
    """Who sent a batch, if it is an idempotent producer."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Topic configuration, by Kafka's names and with its defaults."""

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * _DAY_MS
    index_interval_bytes: int = 4096
    segment_index_bytes: int = 10 * 1024 * 1024


class LogWriter:
    """One new partition. Its directory must not exist; close it through its LogDirWriter."""

    def __init__(self, partition_dir: str, settings: LogSettings, topic_id: uuid.UUID) -> None:
        os.mkdir(partition_dir)
        self.path = partition_dir
        self.next_offset = 0
        self.leader_epoch = 0  # of what is appended from now on
        self._settings = settings
        self._epochs: list[EpochEntry] = []
        self._producers: dict[int, ProducerEntry] = {}
        self._segment = SegmentWriter(partition_dir, 0, settings.index_interval_bytes)
        metadata_path = os.path.join(partition_dir, PARTITION_METADATA)
        partition_metadata.write(metadata_path, PartitionMetadata(0, topic_id))

    def append(
        self,
        messages: Sequence[Message],
        codec: Codec = Codec.NONE,
        producer: Producer | None = None,
        log_append_time_ms: int | None = None,
    ) -> int:
        """Append one batch as a leader does, and return the offset of its first record."""
        base_offset = self.next_offset
        records = [
            Record(
                base_offset + number, message.timestamp, message.key, message.value, message.headers
            )
            for number, message in enumerate(messages)
        ]
        options = BatchOptions(
            partition_leader_epoch=self.leader_epoch,
            **({} if producer is None else producer._asdict()),
        )
        batch = encode_batch(records, codec, options)
        if log_append_time_ms is not None:
            batch = self._with_append_time(batch, log_append_time_ms)
        self.append_batch(batch)
        return base_offset

    def _with_append_time(self, batch: bytes, append_time_ms: int) -> bytes:
        """A broker stamps the header only: the records keep the deltas that the producer gave."""
        header = decode_header(batch, self._segment.size_bytes, self.path)
        attributes = header.attributes | LOG_APPEND_TIME
        stamped = header._replace(attributes=attributes, max_timestamp=append_time_ms)
        return seal(stamped, batch[BATCH_HEADER_BYTES:])

    def append_batch(self, batch: bytes) -> None:
        """Append a batch as a follower does: with the offsets and the leader epoch that it has."""
        header = decode_header(batch, self._segment.size_bytes, self.path)
        assert header.size_bytes == len(batch), "one whole batch"
        assert header.base_offset >= self.next_offset, "offsets ascend"
        assert not header.is_transactional and not header.is_control, "no transactions"
        if header.size_bytes > self._settings.segment_bytes:
            limit = self._settings.segment_bytes
            raise ValueError(f"a batch of {len(batch)} bytes, but segment.bytes is {limit}")
        if self._must_roll(header):
            self._roll(header.base_offset)
        self._segment.append(header, batch)
        self._note_epoch(header)
        self._note_producer(header)
        self.next_offset = header.next_offset

    def roll(self) -> None:
        """Start a new segment, unless the active one is empty."""
        if self._segment.size_bytes:
            self._roll(self.next_offset)

    def close(self) -> None:
        """Finish the active segment, and write the snapshot and the leader epochs."""
        self._segment.finish()
        if self.next_offset > self._segment.base_offset:
            self._snapshot(self.next_offset)
        epochs_path = os.path.join(self.path, LEADER_EPOCH_CHECKPOINT)
        if self._epochs:
            leader_epoch_checkpoint.write(epochs_path, self._epochs)
        else:
            filesystem.replace_file(epochs_path, b"")  # as Kafka creates it

    def abandon(self) -> None:
        """Let go of the files as they stand: as after a crash."""
        self._segment.abandon()

    def _must_roll(self, header: BatchHeader) -> bool:
        segment, settings = self._segment, self._settings
        if not segment.size_bytes:
            return not segment.fits(header.last_offset)
        has_time = segment.first_timestamp >= 0  # otherwise by its age, but there is no clock here
        waited_ms = header.max_timestamp - segment.first_timestamp if has_time else 0
        return (
            segment.size_bytes + header.size_bytes > settings.segment_bytes
            or waited_ms > settings.segment_ms
            or segment.is_full(settings.segment_index_bytes)
            or not segment.fits(header.last_offset)
        )

    def _roll(self, base_offset: int) -> None:
        self._segment.finish()
        self._snapshot(base_offset)
        interval = self._settings.index_interval_bytes
        self._segment = SegmentWriter(self.path, base_offset, interval)

    def _snapshot(self, offset: int) -> None:
        entries = [self._producers[producer_id] for producer_id in sorted(self._producers)]
        producer_snapshot.write(os.path.join(self.path, file_name(offset, SNAPSHOT)), entries)

    def _note_epoch(self, header: BatchHeader) -> None:
        latest = self._epochs[-1].epoch if self._epochs else -1
        if header.partition_leader_epoch > latest:
            self._epochs.append(EpochEntry(header.partition_leader_epoch, header.base_offset))

    def _note_producer(self, header: BatchHeader) -> None:
        if header.producer_id < 0:
            return
        self._producers[header.producer_id] = ProducerEntry(
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            last_sequence=header.last_sequence,
            last_offset=header.last_offset,
            offset_delta=header.last_offset_delta,
            timestamp=header.max_timestamp,
            coordinator_epoch=None,
            current_txn_first_offset=None,
        )


class LogDirWriter:
    """A new log directory, to be used in a `with` statement.

    Where that ends well, the directory is one of a broker that was shut down cleanly. Where it ends
    with an error, there is no marker of that, and no checkpoint.
    """

    def __init__(self, path: str, cluster_id: str, node_id: int = 1) -> None:
        os.makedirs(path, exist_ok=True)
        if os.listdir(path):
            raise FileExistsError(f"{path} is not empty")
        self.path = path
        self._logs: dict[tuple[str, int], LogWriter] = {}
        directory_id = uuid.uuid5(_ID_NAMESPACE, f"{cluster_id} {node_id} {os.path.abspath(path)}")
        directory = partition_metadata.encode_uuid(directory_id)
        meta_properties.write(path, MetaProperties(1, cluster_id, node_id, directory))

    def create(
        self, topic: str, partition: int, settings: LogSettings = LogSettings()
    ) -> LogWriter:
        """Create a partition, empty."""
        partition_dir = os.path.join(self.path, f"{topic}-{partition}")
        log = LogWriter(partition_dir, settings, uuid.uuid5(_ID_NAMESPACE, topic))
        self._logs[topic, partition] = log
        return log

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            for log in self._logs.values():
                log.abandon()

    def close(self) -> None:
        """Close every log, write the checkpoints, and last the marker of a clean shutdown."""
        for log in self._logs.values():
            log.close()
        ends = {name: log.next_offset for name, log in self._logs.items()}
        checkpoints: dict[str, dict[tuple[str, int], int]] = {
            checkpoint.RECOVERY_POINT: ends,
            checkpoint.REPLICATION: ends,  # the high watermark: nobody lags behind
            checkpoint.LOG_START: {},  # only those that do not start at their first segment
            checkpoint.CLEANER_OFFSET: {},
        }
        for name, entries in checkpoints.items():
            checkpoint.write(os.path.join(self.path, name), entries)
        filesystem.sync_directory(self.path)
        clean_shutdown.write(self.path)
