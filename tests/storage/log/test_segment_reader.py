"""Walking a `.log` file: framing, damage, and files that end too early (F-3)."""

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from storage.codecs.compression import Codec
from storage.errors import CorruptFileError
from storage.formats.record import Record
from storage.formats.record_batch import decode_header, encode_batch
from storage.log import segment_reader
from storage.log.segment_reader import first_sound_batch, read_batch_headers, read_batches
from tests.storage.kafka_batches import COMMIT_MARKER, DELETE_HORIZON, EMPTY, two_records
from tests.storage.legacy_vectors import V0, V0_LZ4, V1, V1_LZ4
from tests.support.made_log import keyed
from tests.support.reference_batch import encode

KAFKAS = [two_records(codec.name) for codec in Codec] + [COMMIT_MARKER, DELETE_HORIZON, EMPTY]


def write(directory: Path, *batches: bytes) -> str:
    path = directory / "00000000000000000000.log"
    path.write_bytes(b"".join(batches))
    return str(path)


def starts(batches: list[bytes]) -> list[int]:
    return [sum(map(len, batches[:index])) for index in range(len(batches))]


def test_all_batches_in_order(tmp_path: Path) -> None:
    path = write(tmp_path, *KAFKAS)
    headers = list(read_batch_headers(path))
    assert headers == [
        (position, decode_header(batch, 0, ""))
        for position, batch in zip(starts(KAFKAS), KAFKAS, strict=True)
    ]
    assert [(p, h, bytes(b)) for p, h, b in read_batches(path)] == [
        (position, header, batch) for (position, header), batch in zip(headers, KAFKAS, strict=True)
    ]


def test_a_read_that_gives_less_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It made a sound log count as cut short, and be remembered as damaged."""
    path, pread = write(tmp_path, *KAFKAS), os.pread
    whole = list(read_batch_headers(path))
    monkeypatch.setattr(
        os, "pread", lambda file, size, position: pread(file, min(size, 40), position)
    )
    assert list(read_batch_headers(path)) == whole


def test_an_empty_file_has_none(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert list(read_batch_headers(path)) == []
    assert list(read_batches(path)) == []


def test_batches_larger_and_smaller_than_what_is_read_at_once(tmp_path: Path) -> None:
    sizes = [10, 40_000, 1_100_000, 5, 1_048_576 - 61, 3, 2_500_000, 1] + [30] * 2000
    batches = [
        encode_batch([Record(offset, 0, None, bytes(size))]) for offset, size in enumerate(sizes)
    ]
    path = write(tmp_path, *batches)
    kept = list(read_batches(path))  # bytes stay valid after the reader has gone on
    assert [bytes(batch) for _, _, batch in kept] == batches
    assert [position for position, _ in read_batch_headers(path)] == starts(batches)


@pytest.mark.parametrize("beyond", [-62, -61, -60, -1, 0, 1, 2])
def test_batches_that_end_near_the_end_of_what_is_read_at_once(tmp_path: Path, beyond: int) -> None:
    first = encode_batch([Record(0, 0, None, bytes(1000))])
    overhead = len(encode_batch([Record(1, 0, None, bytes(1_000_000))])) - 1_000_000
    value = bytes(1024 * 1024 + beyond - len(first) - overhead)
    batches = [first, encode_batch([Record(1, 0, None, value)]), EMPTY]
    path = write(tmp_path, *batches)
    assert starts(batches)[2] == 1024 * 1024 + beyond
    assert [bytes(batch) for _, _, batch in read_batches(path)] == batches
    assert [position for position, _ in read_batch_headers(path)] == starts(batches)


def test_a_walk_between_two_positions(tmp_path: Path) -> None:
    path = write(tmp_path, *KAFKAS)
    at = starts(KAFKAS)
    assert [p for p, _ in read_batch_headers(path, start=at[2])] == at[2:]
    assert [p for p, _ in read_batch_headers(path, start=at[2], end=at[5])] == at[2:5]
    assert [p for p, _ in read_batch_headers(path, end=0)] == []
    with pytest.raises(CorruptFileError, match=f"byte {at[4]}: batch is cut short"):
        list(read_batch_headers(path, end=at[5] - 1))


def test_a_file_that_ends_inside_a_batch_is_corrupt(tmp_path: Path) -> None:
    """Stricter than F-3.3: a tail of 17 bytes or less is not passed over either."""
    batch = two_records("NONE")
    for kept in range(1, len(batch)):
        path = write(tmp_path, batch, batch[:kept])
        for walk in (read_batch_headers(path), read_batches(path)):
            assert next(iter(walk))[0] == 0
            with pytest.raises(CorruptFileError, match=rf"\.log, byte {len(batch)}: .* {kept} of "):
                next(iter(walk))


def test_a_preallocated_tail_of_zeros_is_corrupt(tmp_path: Path) -> None:
    path = write(tmp_path, EMPTY, bytes(4096))
    with pytest.raises(CorruptFileError, match="byte 61: entry length 0"):
        list(read_batch_headers(path))


def test_a_wrong_crc_is_found_where_whole_batches_are_read(tmp_path: Path) -> None:
    damaged = bytearray(two_records("LZ4"))
    damaged[-1] ^= 1
    path = write(tmp_path, EMPTY, bytes(damaged))
    with pytest.raises(CorruptFileError, match="byte 61: batch has CRC 0xa3ac2aa2, its bytes give"):
        list(read_batches(path))
    assert len(list(read_batch_headers(path))) == 2


def test_a_legacy_message_is_a_batch_of_one_record(tmp_path: Path) -> None:
    """F-3.1, F-7.8; golden vector 4."""
    v1 = "0000000000000000000000200685b364010000000000000454c3000000046b6579310000000676616c756531"
    path = write(tmp_path, EMPTY, bytes.fromhex(v1))
    for _, header in (list(read_batch_headers(path))[1], list(read_batches(path))[1][:2]):
        assert (header.magic, header.base_offset, header.next_offset) == (1, 0, 1)
        assert (header.max_timestamp, header.records_count, header.producer_id) == (283843, 1, -1)
        assert header.partition_leader_epoch == -1
    damaged = write(tmp_path, EMPTY, bytes.fromhex(v1)[:-1] + b"2")
    with pytest.raises(CorruptFileError, match=r"\.log, byte 61: message has CRC 0x0685b364"):
        list(read_batches(damaged))


BATCH = encode(keyed(1000, "ab"))
FAR = 5 << 32  # a base offset whose upper half is not zero


def found(tmp_path: Path, data: bytes, start: int = 0, base_offset: int = 0) -> int | None:
    path = tmp_path / "log"
    path.write_bytes(data)
    return first_sound_batch(str(path), start, base_offset)


@pytest.mark.parametrize("before", [0, 1, 7, 60, 61, 500])
def test_a_batch_is_found_at_any_byte(tmp_path: Path, before: int) -> None:
    noise = random.Random(before).randbytes(before)
    assert found(tmp_path, noise + BATCH) == before
    assert found(tmp_path, noise + BATCH + b"torn") == before
    assert found(tmp_path, bytes(before) + BATCH) == before


def test_it_is_looked_for_from_a_position_on(tmp_path: Path) -> None:
    assert found(tmp_path, BATCH + BATCH, 1) == len(BATCH)
    assert found(tmp_path, BATCH, 1) is None


def test_no_part_of_a_batch_is_one(tmp_path: Path) -> None:
    for size in range(len(BATCH)):
        assert found(tmp_path, BATCH[:size]) is None
    for position in range(17, len(BATCH)):  # offset, leader epoch and magic are not under the CRC
        flipped = bytearray(BATCH)
        flipped[position] ^= 0x40
        assert found(tmp_path, bytes(flipped)) is None


def test_a_batch_of_a_codec_that_nobody_knows_is_sound(tmp_path: Path) -> None:
    """Its CRC is right: it is no torn batch, whatever it holds."""
    unknown = encode(replace(keyed(0, "a"), attributes=7))
    assert found(tmp_path, b"xy" + unknown) == 2


@pytest.mark.parametrize("message", [V0, V1, V0_LZ4, V1_LZ4])
def test_messages_of_old_formats_are_found(tmp_path: Path, message: bytes) -> None:
    """Kafka's own vectors (F-17)."""
    assert found(tmp_path, b"\x17\x23" + message) == 2


def test_zeros_and_noise_are_nothing(tmp_path: Path) -> None:
    assert found(tmp_path, bytes(100_000)) is None
    for seed in range(5):
        assert found(tmp_path, random.Random(seed).randbytes(100_000)) is None


def test_the_offset_has_to_be_one_of_the_segment(tmp_path: Path) -> None:
    """A copy of another log's batch in a record's value is no batch of this one."""
    assert found(tmp_path, BATCH, base_offset=1001) is None
    assert found(tmp_path, BATCH, base_offset=FAR) is None
    for offset in (FAR, FAR + 2**31 - 1, FAR + 2**32):
        data = b"x" + encode(keyed(offset, "ab"))
        assert found(tmp_path, data, base_offset=FAR) == 1


def test_one_at_the_edge_of_what_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_reader, "_CHUNK_BYTES", 64)
    for before in range(40, 90):
        assert found(tmp_path, b"\xff" * before + BATCH) == before


def test_bytes_that_pretend_too_often_are_taken_for_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be checked is not cut off: a log that feigns batches costs no endless time."""
    monkeypatch.setattr(segment_reader, "_CHECKED_AT_MOST", 1000)
    feigned = bytes(8) + (300).to_bytes(4, "big") + b"\xff" * 300
    assert found(tmp_path, feigned * 3 + bytes(300)) is None
    assert found(tmp_path, feigned * 4 + bytes(300)) == 3 * len(feigned)
