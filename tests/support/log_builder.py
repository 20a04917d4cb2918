"""Builds log directories of small logs: one says what was appended, and where it rolled.

What the bytes are is left to what writes logs in this project, today the log writer: a storage
engine takes its place here, in `_write`. Logs that may not be of our own making are those of
`made_log`, laid out by hand, and of `tests/golden`, written by Kafka.
"""

import atexit
import functools
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from storage.codecs.compression import Codec
from storage.log.log_writer import LogDirWriter, LogSettings, Message, Producer

INTERVAL_BYTES = 4096


class Batch(NamedTuple):
    messages: tuple[Message, ...]
    codec: Codec = Codec.NONE
    producer: Producer | None = None


class BuiltLog(NamedTuple):
    """A partition; its last segment is the active one."""

    topic: str
    partition: int
    segments: tuple[tuple[Batch, ...], ...]
    index_interval_bytes: int = INTERVAL_BYTES


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
    with LogDirWriter(str(root), "built") as log_dir:
        for built in logs:
            settings = LogSettings(index_interval_bytes=built.index_interval_bytes)
            log = log_dir.create(built.topic, built.partition, settings)
            for segment in built.segments:
                log.roll()
                for messages, codec, producer in segment:
                    log.append(messages, codec, producer)
