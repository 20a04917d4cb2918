"""Log directories of a few small segments, for tests of what a plan makes of them.

A log of n segments has two records of 79 bytes together in each, with offsets 0-1, 2-3, …, and with
timestamps 1000, 2000, … ms, one for each segment; the last segment is active.
"""

import atexit
import functools
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from compactor.config import Config, load_config
from storage.file_names import SNAPSHOT, file_name
from storage.formats import checkpoint, producer_snapshot
from storage.formats.producer_snapshot import ProducerEntry
from storage.log.log_writer import LogDirWriter, Message, Producer

BATCH_BYTES = 79
NOW_MS = 1_000_000
COMPACT = load_config(settings={"cleanup.policy": "compact"})


class Shape(NamedTuple):
    topic: str = "t"
    partition: int = 0
    segments: int = 3
    producer_id: int | None = None


def build(root: Path, *shapes: Shape) -> str:
    """A log directory of a broker that was shut down cleanly."""
    shutil.copytree(_template(shapes or (Shape(),)), root)
    return str(root)


@functools.cache
def _template(shapes: tuple[Shape, ...]) -> Path:
    """Written once, as it takes a hundred times longer than a copy does."""
    root = Path(tempfile.mkdtemp(prefix="plan-logs-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    with LogDirWriter(str(root), "cluster") as log_dir:
        for shape in shapes:
            log = log_dir.create(shape.topic, shape.partition)
            for number in range(shape.segments):
                if number:
                    log.roll()
                time_ms = 1000 * (number + 1)
                producer = None
                if shape.producer_id is not None:
                    producer = Producer(shape.producer_id, 0, 2 * number)
                log.append(
                    [Message(b"a", b"1", time_ms), Message(b"b", b"1", time_ms)], producer=producer
                )
    return root


def clean_up_to(root: Path, *entries: tuple[str, int, int]) -> None:
    """Write the cleaner checkpoint."""
    offsets = {(topic, partition): offset for topic, partition, offset in entries}
    checkpoint.write(str(root / checkpoint.CLEANER_OFFSET), offsets)


def open_transaction(partition: Path, producer_id: int, first_offset: int, end_offset: int) -> None:
    """Let the snapshot at the end of the log say that a transaction is open."""
    entry = ProducerEntry(producer_id, 0, 1, end_offset - 1, 1, NOW_MS, None, first_offset)
    producer_snapshot.write(str(partition / file_name(end_offset, SNAPSHOT)), [entry])


def with_settings(settings: dict[str, str]) -> Config:
    """Every topic compacted, with these settings."""
    return load_config(settings={"cleanup.policy": "compact"} | settings)


def everything(root: Path) -> Sequence[tuple[str, bytes, int]]:
    """Every file below root, its bytes and its time: to see that nothing was changed."""
    return sorted(
        (str(path), path.read_bytes(), path.stat().st_mtime_ns)
        for path in root.rglob("*")
        if path.is_file()
    )
