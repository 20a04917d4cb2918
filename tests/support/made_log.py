"""Partitions made of reference batches, also of transactions, and plans to clean them.

No planner takes part, and no log writer.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cleaner_jobs.messages import ActiveProducer, LogPlan, SegmentGroup
from compactor.planning.round_plan import RoundPlan
from storage.codecs.compression import Codec, compress
from storage.file_names import INDEX, LOG, SNAPSHOT, TIME_INDEX, Segment, file_name
from storage.formats import clean_shutdown
from tests.support.reference_batch import (
    CONTROL,
    HEADER,
    HORIZON,
    TRANSACTIONAL,
    ReferenceBatch,
    ReferenceRecord,
    encode,
    encode_parts,
    split,
)
from tests.support.reference_files import indexes

MTIME_NS = 1_600_000_000_123_000_000
INTERVAL_BYTES = 4096
NOW_MS = 10_000
RETENTION_MS = 1000
ABORT_KEY, COMMIT_KEY, LEADER_CHANGE_KEY = b"\0\0\0\0", b"\0\0\0\1", b"\0\0\0\2"
TXN = TRANSACTIONAL
MARKER = TRANSACTIONAL | CONTROL


def record(
    offset: int, key: bytes | None, value: bytes | None = b"v", timestamp: int | None = None
) -> ReferenceRecord:
    """A record of which no two have the same time unless given."""
    return ReferenceRecord(
        offset, 100 + 10 * offset if timestamp is None else timestamp, key, value
    )


def batch(
    *records: ReferenceRecord, last_offset: int | None = None, **fields: int
) -> ReferenceBatch:
    """As a producer without idempotence would send it; fields of the header by name."""
    header = {
        "base_offset": records[0].offset,
        "last_offset": records[-1].offset if last_offset is None else last_offset,
        "leader_epoch": 0,
        "attributes": 0,
        "base_timestamp": records[0].timestamp,
        "max_timestamp": max(r.timestamp for r in records),
    }
    return ReferenceBatch(**{**header, **fields}, records=records)


def keyed(first_offset: int, keys: str) -> ReferenceBatch:
    """One record for each letter; a capital one is a tombstone, a dot has no key."""
    return batch(
        *(
            record(
                first_offset + i,
                None if letter == "." else letter.lower().encode(),
                None if letter.isupper() else b"%s%d" % (letter.encode(), first_offset + i),
            )
            for i, letter in enumerate(keys)
        )
    )


def packed(made: ReferenceBatch, codec: Codec) -> bytes:
    """The bytes of a batch, its records compressed."""
    raw = encode(made)
    attributes = made.attributes | codec
    return encode_parts(replace(made, attributes=attributes), compress(codec, raw[HEADER.size :]))


def write_segment(
    partition: Path,
    base_offset: int,
    batches: Sequence[bytes | ReferenceBatch],
    interval_bytes: int = INTERVAL_BYTES,
) -> None:
    """A log, its indexes and a snapshot; each segment has a time of its own."""
    raws = [raw if isinstance(raw, bytes) else encode(raw) for raw in batches]
    offset_index, time_index = indexes(raws, base_offset, interval_bytes)
    for kind, data in (
        (LOG, b"".join(raws)),
        (INDEX, offset_index),
        (TIME_INDEX, time_index),
        (SNAPSHOT, b"snapshot"),
    ):
        path = partition / file_name(base_offset, kind)
        path.write_bytes(data)
        mtime_ns = MTIME_NS + base_offset * 7_000_000
        os.utime(path, ns=(mtime_ns, mtime_ns))


def make_partition(
    root: Path,
    segments: Mapping[int, Sequence[bytes | ReferenceBatch]],
    name: str = "orders-0",
    interval_bytes: int = INTERVAL_BYTES,
) -> Path:
    """A log directory with one partition: segments by base offset, the active one last."""
    partition = root / name
    partition.mkdir(parents=True)
    clean_shutdown.write(str(root))
    for base_offset, batches in segments.items():
        write_segment(partition, base_offset, batches, interval_bytes)
    return partition


def log_of(partition: Path, base_offset: int) -> Path:
    return partition / file_name(base_offset, LOG)


def batches_of(partition: Path, base_offset: int) -> list[bytes]:
    return list(split(log_of(partition, base_offset).read_bytes()))


def files_of(partition: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in partition.iterdir()}


def segment_of(partition: Path, base_offset: int) -> Segment:
    stat = log_of(partition, base_offset).stat()
    state = stat.st_mtime_ns, stat.st_ino, stat.st_ctime_ns, stat.st_dev
    return Segment(base_offset, stat.st_size, 0, 0, None, *state)


def plan_of(
    partition: Path,
    groups: Sequence[Sequence[int]],
    first_uncleanable_offset: int,
    first_dirty_offset: int = 0,
    log_id: int = 0,
    producers: Sequence[ActiveProducer] = (),
) -> LogPlan:
    """The plan to clean the segments with these base offsets, in these groups."""
    topic, _, number = partition.name.rpartition("-")
    return LogPlan(
        log_id=log_id,
        log_dir=str(partition.parent),
        topic=topic,
        partition=int(number),
        path=str(partition),
        first_dirty_offset=first_dirty_offset,
        first_uncleanable_offset=first_uncleanable_offset,
        groups=tuple(
            SegmentGroup(tuple(segment_of(partition, base) for base in group)) for group in groups
        ),
        delete_retention_ms=RETENTION_MS,
        index_interval_bytes=INTERVAL_BYTES,
        segment_index_bytes=10 << 20,
        active_producers=tuple(producers),
    )


def round_of(*plans: LogPlan, now_ms: int = NOW_MS) -> RoundPlan:
    return RoundPlan(now_ms, plans, (), (), {}, ())


def of_producer(made: ReferenceBatch, producer_id: int, attributes: int = TXN) -> ReferenceBatch:
    sequence = -1 if attributes & CONTROL else 0
    return replace(
        made,
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )


def marker(offset: int, producer_id: int, key: bytes, horizon_ms: int | None = None) -> bytes:
    made = of_producer(batch(record(offset, key, b"\0" * 6)), producer_id, MARKER)
    if horizon_ms is not None:
        made = replace(made, attributes=MARKER | HORIZON, base_timestamp=horizon_ms)
    return encode(made)


def index_entry(producer_id: int, first_offset: int, last_offset: int, stable_offset: int) -> bytes:
    """Return an entry of a `.txnindex` (F-11.1): version 0, then four int64."""
    fields: Sequence[int] = (producer_id, first_offset, last_offset, stable_offset)
    return b"\0\0" + b"".join(field.to_bytes(8, "big") for field in fields)
