"""Messages of format v0 and v1, held against what Kafka wrote."""

import pytest

from storage.codecs.compression import Codec, compress
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.formats.legacy_messages import check_crc, decode_header, decode_records
from storage.formats.record import Record
from tests.storage.legacy_vectors import V0, V0_LZ4, V1, V1_LZ4
from tests.support.legacy_writer import encode_message, encode_message_set

RECORDS = [Record(0, 283843, b"key1", b"value1"), Record(1, 1234, b"key2", b"value2")]
OF_V0 = [record._replace(timestamp=-1) for record in RECORDS]


def records_of(entry: bytes) -> list[Record]:
    header = decode_header(entry, 7, "0.log")
    assert header.size_bytes == len(entry)
    check_crc(entry, header, "0.log", 7)
    return decode_records(entry, header, "0.log", 7)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [(V0, OF_V0[:1]), (V1, RECORDS[:1]), (V0_LZ4, OF_V0), (V1_LZ4, RECORDS)],
)
def test_kafkas_messages_are_read(entry: bytes, expected: list[Record]) -> None:
    """F-7.1, F-7.4; the header checksum of lz4 in v0 is wrong, F-8.4."""
    assert records_of(entry) == expected


@pytest.mark.parametrize(
    ("magic", "count", "codec", "expected"),
    [
        (0, 1, Codec.NONE, V0),
        (1, 1, Codec.NONE, V1),
        (0, 2, Codec.LZ4, V0_LZ4),
        (1, 2, Codec.LZ4, V1_LZ4),
    ],
)
def test_messages_are_written_as_kafka_wrote_them(
    magic: int, count: int, codec: Codec, expected: bytes
) -> None:
    """F-7.9."""
    assert encode_message_set(magic, RECORDS[:count], codec) == expected


def test_offsets_inside_a_v1_wrapper_are_relative() -> None:
    """F-7.5: the last of them stands for the wrapper's own."""
    moved = (1000).to_bytes(8, "big") + V1_LZ4[8:]
    assert [record.offset for record in records_of(moved)] == [999, 1000]
    moved = (1000).to_bytes(8, "big") + V0_LZ4[8:]
    assert [record.offset for record in records_of(moved)] == [0, 1]


def test_log_append_time_is_that_of_the_wrapper_but_for_messages_of_v0() -> None:
    """F-7.6, F-7.7."""
    inner = encode_message(1, Record(0, 5, b"a", b"")) + encode_message(0, Record(1, 5, b"b", b""))
    for attributes, times in ((0x01, [5, -1]), (0x09, [77, -1])):
        outer = Record(1, 77, None, compress(Codec.GZIP, inner))
        assert [r.timestamp for r in records_of(encode_message(1, outer, attributes))] == times


@pytest.mark.parametrize("entry", [V0, V1, V0_LZ4, V1_LZ4])
def test_every_flipped_byte_under_the_checksum_is_found(entry: bytes) -> None:
    for at in range(12, len(entry)):
        damaged = entry[:at] + bytes([entry[at] ^ 0x80]) + entry[at + 1 :]
        with pytest.raises(CorruptFileError, match=r"0\.log, byte 7: "):
            records_of(damaged)


@pytest.mark.parametrize("entry", [V0, V1])
def test_a_codec_that_the_format_has_not_is_refused(entry: bytes) -> None:
    """F-7.2: there is no zstd."""
    with pytest.raises(UnsupportedFormatError, match=r"0\.log, byte 7: codec 4 is not one of"):
        decode_header(entry[:17] + b"\x04" + entry[18:], 7, "0.log")
