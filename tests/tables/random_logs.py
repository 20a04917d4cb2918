"""Logs by chance, with all that Kafka allows and a table may stumble over.

Records are encoded by the reference encoder, with the offsets that they are to have, and taken by
the storage engine as a follower takes them: it lays out segments, indexes and snapshots.
"""

from dataclasses import replace
from pathlib import Path
from random import Random

from compactor import Log
from demo.new_log_dir import new_log_dir
from storage.codecs.compression import Codec
from storage.formats.record import Record
from tests.support.legacy_writer import encode_message_set
from tests.support.made_log import ABORT_KEY, COMMIT_KEY, marker, of_producer, packed
from tests.support.reference_batch import (
    HORIZON,
    LOG_APPEND_TIME,
    Header,
    ReferenceBatch,
    ReferenceRecord,
)

CODECS = tuple(Codec)
NOW_MS = 1_700_000_000_000
YEAR_ONE_MS, YEAR_10000_MS = -62_135_596_800_000, 253_402_300_800_000
DAY_MS = 86_400_000
EXTREME_MS = (
    *(-1, -2, 0, 1, YEAR_ONE_MS, YEAR_ONE_MS - 1, YEAR_10000_MS - 1, YEAR_10000_MS),
    *(YEAR_ONE_MS + DAY_MS, YEAR_ONE_MS + 2 * DAY_MS, YEAR_ONE_MS + 2 * DAY_MS - 1),
    *(YEAR_10000_MS - DAY_MS, YEAR_10000_MS - 2 * DAY_MS, YEAR_10000_MS - 2 * DAY_MS - 1),
    *(2**63 - 1, 2**62, -(2**62), 9_223_372_036_855, 9_223_372_036_854_776, 2**53 + 1),
)  # also where nanoseconds and microseconds of 64 bits end
_NAMES = (b"", b"trace", b"\xff\xfe", "schlüssel".encode(), b"trace")
_PRODUCERS = (3, 5, 2**53 + 1, 2**63 - 1)


def write_random_logs(root: Path, first_seed: int, count: int) -> list[Path]:
    """The partitions of a new log directory, one for each seed."""
    paths = []
    with new_log_dir(str(root), "tables", clock=lambda: NOW_MS) as manager:
        for seed in range(first_seed, first_seed + count):
            log = manager.create((f"t{seed}", seed % 3))
            _fill(log, Random(seed))
            paths.append(Path(log.path))
    return paths


def _fill(log: Log, chance: Random) -> None:
    offset, leader_epoch = chance.choice((0, 0, 7, 2**40)), 0
    for magic in (0, 1):
        if chance.random() < 0.2:
            records = [
                Record(offset + at, _time(chance) if magic else -1, _bytes(chance), _bytes(chance))
                for at in range(chance.randint(1, 5))
            ]
            log_time = chance.choice((None, NOW_MS))
            codec = chance.choice((Codec.NONE, Codec.GZIP))
            data = encode_message_set(magic, records, codec, log_time)
            log.append_as_follower(data, leader_epoch)
            offset = records[-1].offset + 1
    open_producers = set[int]()
    for _ in range(chance.choice((0, 3, 15, 40))):
        if chance.random() < 0.1:
            log.roll()
        leader_epoch += chance.choice((0, 0, 0, 1))
        offset += chance.choice((0, 0, 0, 1, 3000))
        if open_producers and chance.random() < 0.4:
            producer = chance.choice(sorted(open_producers))
            open_producers.discard(producer)
            data = marker(offset, producer, chance.choice((ABORT_KEY, COMMIT_KEY)))
            log.append_as_follower(data, leader_epoch)
            offset += 1
            continue
        batch = _batch(chance, offset, leader_epoch)
        if chance.random() < 0.4:
            producer = chance.choice(_PRODUCERS)
            batch = of_producer(batch, producer, batch.attributes | 0x10)
            batch = replace(batch, base_sequence=chance.choice((0, 2**31 - 2)))
            open_producers.add(producer)
        log.append_as_follower(packed(batch, chance.choice(CODECS)), leader_epoch)
        offset = batch.last_offset + 1
    if chance.random() < 0.7:
        for producer in sorted(open_producers):
            log.append_as_follower(marker(offset, producer, ABORT_KEY), leader_epoch)
            offset += 1


def _batch(chance: Random, base_offset: int, leader_epoch: int) -> ReferenceBatch:
    """Its last records may be gone, and its times may be those of the broker."""
    offset, records = base_offset + chance.choice((0, 0, 4)), []
    usual = chance.random() < 0.5
    for _ in range(chance.choice((1, 2, 9))):
        time_ms = NOW_MS + chance.randint(-1000, 1000) if usual else _time(chance)
        headers = tuple(_header(chance) for _ in range(chance.choice((0, 0, 1, 3))))
        records.append(ReferenceRecord(offset, time_ms, _bytes(chance), _bytes(chance), headers))
        offset += 1 + chance.choice((0, 0, 0, 70))
    base_ms = records[0].timestamp
    if any(abs(record.timestamp - base_ms) >= 2**63 for record in records):
        records = [replace(record, timestamp=base_ms) for record in records]
    largest = max(record.timestamp for record in records)
    attributes = chance.choice((0, 0, 0, LOG_APPEND_TIME, HORIZON))
    return ReferenceBatch(
        base_offset=base_offset,
        last_offset=offset - 1 + chance.choice((0, 0, 5)),
        leader_epoch=leader_epoch,
        attributes=attributes,
        base_timestamp=base_ms,
        max_timestamp=largest,
        records=tuple(records),
    )


def _time(chance: Random) -> int:
    return chance.choice((*EXTREME_MS, NOW_MS, NOW_MS))


def _header(chance: Random) -> Header:
    return chance.choice(_NAMES), _bytes(chance)


def _bytes(chance: Random) -> bytes | None:
    length = chance.choice((None, 0, 1, 9, 64, 300))
    return None if length is None else chance.randbytes(length)
