"""A small sound log directory, built batch by batch, for tests that then damage it."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from storage.codecs.compression import Codec
from storage.file_names import INDEX, LOG, SNAPSHOT, TIME_INDEX, file_name
from storage.formats import checkpoint, meta_properties, producer_snapshot
from storage.formats.record import Record
from storage.formats.record_batch import decode_header, encode_batch
from storage.formats.segment_indexes import build_indexes

TOPIC, PARTITION = "orders", 0
RECORDS_A_BATCH = 3
BATCHES_A_SEGMENT = 5
END_OFFSET = 2 * RECORDS_A_BATCH * BATCHES_A_SEGMENT


def build(root: Path, codec: Codec = Codec.NONE) -> Path:
    """Two segments of five batches, an index entry for nearly each; the partition directory."""
    root.mkdir(exist_ok=True)
    meta_properties.write(str(root), meta_properties.MetaProperties(0, None, 1, None))
    partition = root / f"{TOPIC}-{PARTITION}"
    partition.mkdir()
    half = END_OFFSET // 2
    for base_offset in (0, half):
        offsets = range(base_offset, base_offset + half, RECORDS_A_BATCH)
        write_segment(partition, base_offset, [_batch(offset, codec) for offset in offsets])
    producer_snapshot.write(str(partition / file_name(half, SNAPSHOT)), [])
    for name in (checkpoint.RECOVERY_POINT, checkpoint.REPLICATION):
        checkpoint.write(str(root / name), {(TOPIC, PARTITION): END_OFFSET})
    return partition


def write_segment(partition: Path, base_offset: int, batches: Sequence[bytes]) -> None:
    """A log of these batches, and its indexes with an interval of 0."""
    headers = [decode_header(batch, 0, "") for batch in batches]
    indexes = build_indexes(
        base_offset,
        np.array([header.size_bytes for header in headers], np.int64),
        np.array([header.last_offset for header in headers], np.int64),
        np.array([header.max_timestamp for header in headers], np.int64),
        0,
    )
    (partition / file_name(base_offset, LOG)).write_bytes(b"".join(batches))
    (partition / file_name(base_offset, INDEX)).write_bytes(indexes.offset_index)
    (partition / file_name(base_offset, TIME_INDEX)).write_bytes(indexes.time_index)


def patch(path: Path, position: int, data: bytes) -> None:
    """Put data over what stands at a position."""
    with open(path, "r+b") as out:
        out.seek(position)
        out.write(data)


def snapshot_of(root: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below root, its bytes and modification time: to see that nothing was changed."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            found[str(path)] = path.read_bytes(), path.stat().st_mtime_ns
    return found


def _batch(offset: int, codec: Codec) -> bytes:
    records = [
        Record(o, 1000 + o, b"key-%d" % (o % 4), None if o % 7 == 6 else b"value" * 10)
        for o in range(offset, offset + RECORDS_A_BATCH)
    ]
    return encode_batch(records, codec)
