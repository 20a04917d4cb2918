"""Builds log directories of small logs: one says what was appended, and where it rolled.

The bytes are those of the storage engine. Logs that may not be of our own making are those of
`made_log`, laid out by hand, and of `tests/golden`, written by Kafka.
"""

import atexit
import functools
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from compactor import Log
from demo.new_log_dir import new_log_dir
from storage.codecs.compression import Codec
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from storage.log.validation import AppendRequest

INTERVAL_BYTES = 4096


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


class Batch(NamedTuple):
    messages: Sequence[Message]
    codec: Codec = Codec.NONE
    producer: Producer | None = None


class BuiltLog(NamedTuple):
    """A partition; its last segment is the active one."""

    topic: str
    partition: int
    segments: tuple[tuple[Batch, ...], ...]
    index_interval_bytes: int = INTERVAL_BYTES


def append(log: Log, batch: Batch, leader_epoch: int = 0) -> None:
    """Append one batch as a leader does."""
    records = [
        Record(offset, message.timestamp, message.key, message.value, message.headers)
        for offset, message in enumerate(batch.messages)
    ]
    sent_by = {} if batch.producer is None else batch.producer._asdict()
    data = encode_batch(records, batch.codec, BatchOptions(**sent_by))
    log.append_as_leader(data, AppendRequest(leader_epoch=leader_epoch))


def build_log_dir(root: Path, *logs: BuiltLog) -> None:
    """A log directory of a broker that was shut down cleanly."""
    shutil.copytree(_template(logs), root, dirs_exist_ok=True)


@functools.cache
def _template(logs: tuple[BuiltLog, ...]) -> Path:
    """Written once, as it takes a hundred times longer than a copy does."""
    root = Path(tempfile.mkdtemp(prefix="built-logs-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    _write(root, logs)
    return root


def _write(root: Path, logs: tuple[BuiltLog, ...]) -> None:
    with new_log_dir(str(root), "built") as manager:
        for built in logs:
            interval = str(built.index_interval_bytes)
            manager.configure_topic(built.topic, {"index.interval.bytes": interval})
            log = manager.create((built.topic, built.partition))
            for batches in built.segments:
                if log.segments[-1].size_bytes:
                    log.roll()
                for batch in batches:
                    append(log, batch)
