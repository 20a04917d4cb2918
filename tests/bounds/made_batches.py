"""Logs to be lied about: batches that Kafka wrote, and made ones of every codec and kind."""

from dataclasses import replace
from functools import cache
from random import Random

from storage.codecs.compression import Codec
from storage.formats.record import Record
from tests.damage.damaged_logs import all_sound, log_files
from tests.support.legacy_writer import encode_message_set
from tests.support.made_log import packed
from tests.support.reference_batch import (
    CONTROL,
    HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Header,
    ReferenceBatch,
    ReferenceRecord,
    split,
)

KEYS = None, b"", b"a", b"b", b"key", b"k" * 8, b"k" * 100
VALUES = None, b"", b"v", b"v" * 63, b"v" * 64, b"v" * 700
HEADERS: tuple[tuple[Header, ...], ...] = (
    (),
    (),
    ((b"h", b"1"),),
    ((b"h", None), (b"h" * 70, b"")),
    (("é".encode(), b"1"),),
)
MARKER = ReferenceRecord(0, 5, b"\0\0\0\1", b"\0\0\0\0\0\0")


@cache
def written_by_kafka() -> tuple[tuple[bytes, ...], ...]:
    """The batches of each `.log`, of all formats and codecs."""
    logs = [data for name in all_sound() for _, data in log_files(name, ".log")]
    return tuple(tuple(split(data)) for data in logs if data)


def made(chance: Random) -> list[bytes]:
    """A few batches, one behind the other, of every format."""
    batches: list[bytes] = []
    offset = chance.choice((0, 0, 7, 2**20))
    for _ in range(chance.choice((0, 0, 1, 2))):
        count, magic = chance.randrange(1, 6), chance.randrange(2)
        codec = chance.choice((Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4))
        messages = [
            Record(
                offset + i, chance.choice((0, 5, -1)), chance.choice(KEYS), chance.choice(VALUES)
            )
            for i in range(count)
        ]
        data = encode_message_set(magic, messages, codec, chance.choice((None, 77)))
        batches += split(data)  # what frames a batch frames a message
        offset += count
    for _ in range(chance.randrange(1, 6)):
        batch = _one(offset, chance)
        offset = batch.last_offset + 1
        batches.append(packed(batch, chance.choice(list(Codec))))
    return batches


def _one(offset: int, chance: Random) -> ReferenceBatch:
    producer = chance.choice(((-1, -1, -1), (7, 0, offset % 1000), (8, 3, -1)))
    if chance.random() < 0.1:
        marker = (replace(MARKER, offset=offset),)
        return ReferenceBatch(offset, offset, 0, CONTROL | TRANSACTIONAL, 5, 5, 7, 0, -1, marker)
    records: list[ReferenceRecord] = []
    at = offset
    for _ in range(chance.randrange(0, 12)):
        at += chance.choice((0, 0, 0, 1, 100)) if records else 0
        time = chance.choice((0, 5, 100, 2**40, -1))
        kind = chance.choice(KEYS), chance.choice(VALUES), chance.choice(HEADERS)
        records.append(ReferenceRecord(at, time, *kind))
        at += 1
    attributes = chance.choice((0, 0, LOG_APPEND_TIME, HORIZON, TRANSACTIONAL))
    last = at - 1 if records else offset
    return ReferenceBatch(offset, last, 0, attributes, 5, 100, *producer, tuple(records))
