"""Whole batches are found wherever they begin behind damage, and nothing else is taken for one."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from storage.log import segment_reader
from storage.log.segment_reader import first_sound_batch
from tests.storage.legacy_vectors import V0, V0_LZ4, V1, V1_LZ4
from tests.support.made_log import keyed
from tests.support.reference_batch import encode

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
