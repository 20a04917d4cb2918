"""Damage of every kind to one `.log` file, and what is said of it."""

from pathlib import Path
from zlib import crc32

import pytest

from compactor.log_checks import batch_checks
from compactor.log_checks.batch_checks import MAX_FINDINGS, SegmentCheck, SegmentColumns
from compactor.log_checks.findings import Finding
from storage.codecs.compression import Codec
from storage.formats import batch_windows
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from tests.compactor.small_log import patch
from tests.support.reference_batch import sealed

BATCH_RECORDS = 4
CODECS = list(Codec)
LAST_OFFSET_DELTA = range(23, 27)  # damaged, it makes the next batch look out of order too


def batches(codec: Codec = Codec.NONE, count: int = 3) -> list[bytes]:
    return [
        encode_batch(
            [Record(o, 100 + o, b"k%d" % o, b"v" * 40) for o in range(i, i + BATCH_RECORDS)], codec
        )
        for i in range(0, count * BATCH_RECORDS, BATCH_RECORDS)
    ]


def write(path: Path, parts: list[bytes]) -> Path:
    path.write_bytes(b"".join(parts))
    return path


def checked(path: Path, base_offset: int = 0) -> tuple[list[Finding], SegmentColumns]:
    check = SegmentCheck(str(path), base_offset)
    columns = check.run()
    return check.findings, columns


def problems(path: Path) -> list[tuple[int, str]]:
    return [(finding.position, finding.problem) for finding in checked(path)[0]]


@pytest.mark.parametrize("codec", CODECS)
def test_a_sound_file_has_no_findings_and_gives_its_columns(tmp_path: Path, codec: Codec) -> None:
    parts = batches(codec)
    findings, columns = checked(write(tmp_path / "0.log", parts))
    assert findings == []
    assert columns.positions.tolist() == [0, len(parts[0]), len(parts[0]) + len(parts[1])]
    assert columns.last_offsets.tolist() == [3, 7, 11]
    assert columns.max_timestamps.tolist() == [103, 107, 111]
    assert columns.end_position == columns.log_bytes == sum(map(len, parts))
    assert columns.records == 12


def test_an_empty_file_is_sound(tmp_path: Path) -> None:
    findings, columns = checked(write(tmp_path / "0.log", []))
    assert findings == []
    assert columns.end_position == columns.records == 0


@pytest.mark.parametrize("codec", CODECS)
def test_a_flipped_bit_anywhere_under_the_checksum_is_found(tmp_path: Path, codec: Codec) -> None:
    """F-4.2: bytes 21 and on; the batches around it are still read."""
    parts = batches(codec)
    for position in range(21, len(parts[1])):
        flipped = bytearray(parts[1])
        flipped[position] ^= 0x10
        findings, columns = checked(write(tmp_path / "0.log", [parts[0], bytes(flipped), parts[2]]))
        assert findings, position
        assert findings[0].position == len(parts[0]), position
        assert len({f.position for f in findings}) == 1 or position in LAST_OFFSET_DELTA
        assert columns.records >= 2 * BATCH_RECORDS, position


@pytest.mark.parametrize("kept", [1, 11, 12, 16, 17, 18, 60, 61, 62, 100])
def test_a_last_batch_cut_short_is_found(tmp_path: Path, kept: int) -> None:
    """F-3.3: Kafka's reader would stop silently here."""
    first, second, _ = batches()
    [(position, problem)] = problems(write(tmp_path / "0.log", [first, second[:kept]]))
    assert position == len(first)
    assert problem.startswith(f"batch is cut short: {kept}")


def test_a_length_beyond_the_file_does_not_make_it_read_on(tmp_path: Path) -> None:
    first, second, _ = batches()
    path = write(tmp_path / "0.log", [first, second])
    patch(path, len(first) + 8, (2**31 - 100).to_bytes(4, "big"))
    [(position, problem)] = problems(path)
    assert position == len(first)
    assert problem == f"batch is cut short: {len(second)} of 2147483560 bytes"


@pytest.mark.parametrize("chunk_bytes", [64, 100, 150, 1000])
def test_batches_longer_than_a_chunk_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    monkeypatch.setattr(batch_checks, "CHUNK_BYTES", chunk_bytes)
    parts = batches(count=20)
    findings, columns = checked(write(tmp_path / "0.log", parts))
    assert findings == []
    assert columns.records == 20 * BATCH_RECORDS


@pytest.mark.parametrize("codec", CODECS[1:])
def test_the_buffer_for_decompressed_records_grows_and_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: Codec
) -> None:
    monkeypatch.setattr(batch_checks, "CHUNK_BYTES", 4096)
    parts = [
        encode_batch([Record(i, i, b"k", b"v" * size)], codec)
        for i, size in enumerate([10, 100_000, 10, 3000, 3000, 200_000, 1])
    ]
    findings, columns = checked(write(tmp_path / "0.log", parts))
    assert findings == []
    assert columns.records == 7


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_batch_that_decompresses_to_more_than_the_limit_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: Codec
) -> None:
    """By the limit that is in force; the batches around it are still read."""
    limit = 1 << 20
    monkeypatch.setattr(batch_checks, "CHUNK_BYTES", 4096)
    monkeypatch.setattr(batch_windows, "MAX_DECOMPRESSED_BYTES", limit)
    monkeypatch.setattr(batch_windows, "PAYLOAD_BYTES", limit)
    first, _, third = batches(codec)
    bomb = encode_batch([Record(4, 4, b"k", bytes(2 * limit))], codec)
    findings, columns = checked(write(tmp_path / "0.log", [first, bomb, third]))
    assert [(f.position, f.problem) for f in findings] == [
        (len(first), f"the batch decompresses to more than {limit} bytes")
    ]
    assert columns.records == 2 * BATCH_RECORDS


def test_bad_magic_ends_the_file(tmp_path: Path) -> None:
    """F-3.2: without a known layout the length means nothing."""
    first, second, third = batches()
    path = write(tmp_path / "0.log", [first, second, third])
    patch(path, len(first) + 16, b"\x07")
    findings, columns = checked(path)
    assert [(f.position, f.problem) for f in findings] == [
        (len(first), "magic 7 is not a known message format")
    ]
    assert columns.end_position == len(first)


def test_a_legacy_message_is_checked(tmp_path: Path) -> None:
    """F-7.1, golden vector 4."""
    message = bytes.fromhex(
        "0000000000000000000000200685b364010000000000000454c3000000046b6579310000000676616c756531"
    )
    assert problems(write(tmp_path / "0.log", [message])) == []
    damaged = message[:-1] + b"2"
    assert problems(write(tmp_path / "1.log", [damaged])) == [
        (0, f"batch has CRC 0x0685b364, its bytes give {crc32(damaged[16:]):#010x}")
    ]


def test_offsets_that_do_not_ascend_are_found_and_the_rest_is_read(tmp_path: Path) -> None:
    """F-16.2: strictly increasing across batches."""
    first, second, third = batches()
    findings, columns = checked(write(tmp_path / "0.log", [first, second, second, third]))
    assert [f.position for f in findings] == [len(first) + len(second)]
    assert "not above the last offset" in findings[0].problem
    assert columns.records == 4 * BATCH_RECORDS


def test_the_smallest_offset_that_there_is_has_none_before_it(tmp_path: Path) -> None:
    first, second, third = batches()
    lowest = (-(2**63)).to_bytes(8, "big", signed=True) + second[8:]
    findings, columns = checked(write(tmp_path / "0.log", [first, lowest, third]))
    assert [f.position for f in findings] == [len(first)]
    assert columns.records == 2 * BATCH_RECORDS  # of the others


def test_a_first_offset_below_the_base_offset_is_found(tmp_path: Path) -> None:
    """F-2.4."""
    path = write(tmp_path / "5.log", batches())
    findings, _ = checked(path, base_offset=5)
    assert findings[0].position == 0


def test_an_unknown_codec_is_found(tmp_path: Path) -> None:
    """F-4.3: 5 to 7 are errors."""
    first, second, third = batches()
    wrong = sealed(second[:22] + b"\x06" + second[23:])
    assert problems(write(tmp_path / "0.log", [first, wrong, third])) == [
        (len(first), "codec 6 is not known")
    ]


@pytest.mark.parametrize("count", [3, 5, 2**31 - 1])
def test_a_count_that_is_not_that_of_the_records_is_found(tmp_path: Path, count: int) -> None:
    """F-4.8: exactly so many records, and nothing left. A huge count is not believed."""
    first, second, third = batches()
    wrong = sealed(second[:57] + count.to_bytes(4, "big") + second[61:])
    found = problems(write(tmp_path / "0.log", [first, wrong, third]))
    assert [position for position, _ in found] == [len(first)]


@pytest.mark.parametrize("codec", CODECS[1:])
def test_compressed_bytes_that_do_not_decompress_are_found(tmp_path: Path, codec: Codec) -> None:
    first, second, third = batches(codec)
    wrong = sealed(second[:61] + bytes(len(second) - 61))
    findings, columns = checked(write(tmp_path / "0.log", [first, wrong, third]))
    assert [f.position for f in findings] == [len(first)]
    assert columns.records == 2 * BATCH_RECORDS


def test_an_empty_batch_is_sound(tmp_path: Path) -> None:
    """F-17, golden vector 9."""
    empty = bytes.fromhex(
        "00000000000000030000003100000125025160eb4a001000000001ffffffffffffffff"
        "000000000000000c000000000000001700050000000a00000000"
    )
    findings, columns = checked(write(tmp_path / "0.log", [empty]))
    assert findings == []
    assert columns.last_offsets.tolist() == [4]


def test_a_file_full_of_damage_is_cut_off(tmp_path: Path) -> None:
    parts = [bytearray(part) for part in batches(count=MAX_FINDINGS + 10)]
    for part in parts:
        part[20] ^= 1  # in the CRC itself, so that the records decode
    found = problems(write(tmp_path / "0.log", [bytes(part) for part in parts]))
    assert len(found) == MAX_FINDINGS + 1
    assert found[-1][1] == "more is damaged from here on; the rest was not looked at"


def test_a_control_batch_is_sound(tmp_path: Path) -> None:
    """F-6.2."""
    marker = encode_batch(
        [Record(0, 5, b"\0\0\0\1", b"\0\0\0\0\0\7")],
        Codec.NONE,
        BatchOptions(producer_id=9, producer_epoch=1, is_transactional=True, is_control=True),
    )
    assert problems(write(tmp_path / "0.log", [marker])) == []
