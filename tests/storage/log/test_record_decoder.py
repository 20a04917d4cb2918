"""Records as a broker decodes them: the short way gives what the long one gives."""

import random
import re

import pytest

from storage.codecs.compression import Codec
from storage.errors import LogCompactionError
from storage.formats import record as record_format
from storage.formats.batch_header import BATCH_HEADER_BYTES
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch
from storage.log.batches import in_memory
from storage.log.errors import IllegalArgumentError, InvalidRecordError
from storage.log.record_decoder import read_head, read_record

BASE_OFFSET, BASE_TIME = 7, 1_000


def encoded(draw: random.Random) -> bytes:
    key = None if draw.random() < 0.2 else bytes(draw.randrange(3) * 60)
    value = None if draw.random() < 0.2 else bytes(draw.choice([0, 1, 70, 9_000]))
    headers = ((b"h", None),) if draw.random() < 0.2 else ()
    time = BASE_TIME + draw.choice([0, 1, -1, 63, 64, 2**40])
    record = Record(BASE_OFFSET + draw.choice([0, 1, 70, 10_000]), time, key, value, headers)
    return record_format.encode(record, BASE_OFFSET, BASE_TIME)


def outcome(read: object, data: bytes) -> object:
    assert callable(read)
    try:
        record, end = read(data, 0, BASE_OFFSET, BASE_TIME)
    except LogCompactionError as error:
        return type(error)
    return record.offset, record.timestamp, record.key is None, end


@pytest.mark.parametrize("seed", range(20))
def test_heads_are_those_of_the_records(seed: int) -> None:
    """Of sound records, of records cut short, and with any byte changed."""
    draw = random.Random(seed)
    data = bytearray(encoded(draw) + encoded(draw))
    assert outcome(read_head, bytes(data)) == outcome(read_record, bytes(data))
    for _ in range(100):
        changed = bytearray(data)
        changed[draw.randrange(min(len(data), 90))] = draw.randrange(256)
        cut = bytes(changed[: draw.randrange(len(changed) + 1)] if seed % 2 else changed)
        assert outcome(read_head, cut) == outcome(read_record, cut)


def test_what_is_no_record_is_refused() -> None:
    sound = record_format.encode(Record(7, 1_000, b"k", b"v"), BASE_OFFSET, BASE_TIME)
    assert read_record(sound, 0, BASE_OFFSET, BASE_TIME) == (
        Record(7, 1_000, b"k", b"v"),
        len(sound),
    )
    for data in (b"", sound[:-1], b"\x12" + sound[1:], sound[:1] + b"\x00" * 8):
        with pytest.raises(InvalidRecordError):
            read_record(data, 0, BASE_OFFSET, BASE_TIME)
    with pytest.raises(IllegalArgumentError):
        read_record(b"\xff" * 20, 0, BASE_OFFSET, BASE_TIME)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_what_cannot_be_decompressed_is_named_without_an_empty_path(codec: Codec) -> None:
    """The engine names the file itself, where it is known."""
    records = [Record(i, BASE_TIME, b"k", bytes(100)) for i in range(5)]
    data = encode_batch(records, codec)
    data = data[:BATCH_HEADER_BYTES] + b"\xff" * (len(data) - BATCH_HEADER_BYTES)
    (found,) = in_memory(data)
    with pytest.raises(LogCompactionError) as raised:
        list(found.records())
    assert re.fullmatch(r"(\w+: )?the records cannot be decompressed: \w.*", str(raised.value))
