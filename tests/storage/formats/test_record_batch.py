"""v2 batches: Kafka's bytes read and written again, damage, and what is refused (F-4, C-11.9)."""

import struct

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.codecs.compression import Codec
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.formats.record import Record
from storage.formats.record_batch import (
    BatchHeader,
    BatchOptions,
    check_crc,
    decode_header,
    decode_records,
    encode_batch,
    seal,
)
from tests.storage.formats.test_record import RECORDS
from tests.storage.kafka_batches import (
    COMMIT_MARKER,
    DELETE_HORIZON,
    EMPTY,
    two_records,
)

TWO = [Record(0, 283843, b"key1", b"value1"), Record(1, 1234, b"key2", b"value2")]


def read(batch: bytes) -> tuple[BatchHeader, list[Record]]:
    header = decode_header(batch, 700, "0.log")
    check_crc(batch, header, "0.log", 700)
    return header, decode_records(batch, header, "0.log", 700)


def with_field(batch: bytes, position: int, layout: str, value: int) -> bytes:
    """The batch with one field changed, and a CRC that is right again."""
    changed = bytearray(batch)
    struct.pack_into(layout, changed, position, value)
    struct.pack_into(">I", changed, 17, crc32c(bytes(changed[21:])))
    return bytes(changed)


@pytest.mark.parametrize("codec", list(Codec))
def test_kafkas_two_records_are_read_and_written(codec: Codec) -> None:
    """F-17 vectors 1 and 2, F-19."""
    batch = two_records(codec.name)
    header, records = read(batch)
    assert records == TWO
    assert encode_batch(TWO, codec) == batch
    assert header[:4] == (0, len(batch) - 12, -1, 2)
    assert header[5:] == (codec, 1, 283843, 283843, -1, -1, -1, 2)
    assert (header.size_bytes, header.last_offset, header.next_offset) == (len(batch), 1, 2)
    assert header.codec is codec and header.delete_horizon_ms is None
    assert header.last_sequence is None
    assert not (header.is_transactional or header.is_control or header.is_log_append_time)


def test_kafkas_commit_marker() -> None:
    header, records = read(COMMIT_MARKER)
    marker = Record(983, 1000, bytes.fromhex("00000001"), bytes.fromhex("00000000015b"))
    assert records == [marker]
    assert header.is_transactional and header.is_control
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (73, 13, -1)
    options = BatchOptions(
        partition_leader_epoch=29,
        producer_id=73,
        producer_epoch=13,
        is_transactional=True,
        is_control=True,
    )
    assert encode_batch([marker], options=options) == COMMIT_MARKER


def test_kafkas_delete_horizon() -> None:
    """F-4.5: the horizon takes the place of the base timestamp, and deltas are relative to it."""
    header, records = read(DELETE_HORIZON)
    assert header.delete_horizon_ms == 1073741823
    expected = [Record(0, 5, b"0", b"0"), Record(1, 10, b"1", None), Record(2, 15, b"2", b"2")]
    assert records == expected
    options = BatchOptions(partition_leader_epoch=998, delete_horizon_ms=1073741823)
    assert encode_batch(expected, options=options) == DELETE_HORIZON


def test_kafkas_empty_batch() -> None:
    """C-11.9: producer and offsets stay."""
    header, records = read(EMPTY)
    assert (records, header.base_offset, header.last_offset) == ([], 3, 4)
    assert (header.producer_id, header.base_sequence, header.last_sequence) == (23, 10, 11)


def test_records_of_log_append_time_read_as_the_max_timestamp() -> None:
    """F-4.4: whatever their deltas say."""
    batch = with_field(two_records("NONE"), 21, ">h", 0x08)
    assert [record.timestamp for record in read(batch)[1]] == [283843, 283843]
    written = encode_batch(TWO, options=BatchOptions(log_append_time_ms=5000))
    header, records = read(written)
    assert header.is_log_append_time
    assert (header.base_timestamp, header.max_timestamp) == (5000, 5000)
    assert [record.timestamp for record in records] == [5000, 5000]


def test_sequences_wrap_around() -> None:
    """F-4.6."""
    options = BatchOptions(producer_id=1, producer_epoch=0, base_sequence=2**31 - 1)
    assert read(encode_batch(TWO, options=options))[0].last_sequence == 0


def test_offsets_at_both_ends_can_be_kept() -> None:
    options = BatchOptions(base_offset=90, last_offset=120)
    records = [record._replace(offset=record.offset + 100) for record in TWO]
    header, back = read(encode_batch(records, options=options))
    assert (header.base_offset, header.last_offset, back) == (90, 120, records)


@settings(max_examples=50)
@given(st.lists(RECORDS, min_size=1, max_size=5), st.sampled_from(list(Codec)))
def test_what_is_written_is_read(records: list[Record], codec: Codec) -> None:
    records = [record._replace(offset=1000 + index) for index, record in enumerate(records)]
    header, back = read(encode_batch(records, codec))
    assert back == records
    assert header.max_timestamp == max(record.timestamp for record in records)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_cut_short_anywhere_is_corrupt(codec: Codec) -> None:
    batch = two_records(codec.name)
    for kept in range(len(batch)):
        with pytest.raises(CorruptFileError, match=r"0\.log, byte 700: "):
            read(batch[:kept])


@pytest.mark.parametrize("codec", list(Codec))
def test_every_flipped_bit_under_the_crc_is_noticed(codec: Codec) -> None:
    batch = two_records(codec.name)
    for position in range(16, len(batch)):  # magic, CRC and all that the CRC covers
        for bit in range(8):
            damaged = bytearray(batch)
            damaged[position] ^= 1 << bit
            with pytest.raises(CorruptFileError, match=r"0\.log, byte 700: "):
                read(bytes(damaged))


@pytest.mark.parametrize(
    ("position", "layout", "value", "problem"),
    [
        (0, ">q", -1, "base offset -1"),
        (8, ">i", 0, "entry length 0"),
        (8, ">i", -5, "entry length -5"),
        (8, ">i", 13, "entry length 13"),
        (8, ">i", 48, "batch length 48, expected at least 49"),
        (23, ">i", -1, "last offset delta -1"),
        (57, ">i", -1, "records count -1"),
        (57, ">i", 1, "19 bytes are left after record 1, the last"),
        (57, ">i", 3, "record 2 of 3: a varint is cut short"),
        (61, ">b", 0x7E, "record 0 of 2: a record of 63 bytes, 35 left"),
    ],
)
def test_fields_that_cannot_be(position: int, layout: str, value: int, problem: str) -> None:
    with pytest.raises(CorruptFileError, match=rf"0\.log, byte 700: .*{problem}"):
        read(with_field(two_records("NONE"), position, layout, value))


@pytest.mark.parametrize(
    ("position", "layout", "value", "problem"),
    [
        (16, ">b", 0, "message format v0"),
        (16, ">b", 1, "message format v1"),
        (16, ">b", 3, "magic 3"),
        (16, ">b", -1, "magic -1"),
        (21, ">h", 5, "codec 5"),
        (21, ">h", 7, "codec 7"),
    ],
)
def test_what_is_not_handled_is_refused(
    position: int, layout: str, value: int, problem: str
) -> None:
    with pytest.raises(UnsupportedFormatError, match=rf"0\.log, byte 700: {problem}"):
        read(with_field(two_records("NONE"), position, layout, value))


def test_a_legacy_message_shorter_than_a_batch_header_is_called_by_its_name() -> None:
    """F-17 vector 3."""
    v0 = "00000000000000000000001875f0f41d0000000000046b6579310000000676616c756531"
    with pytest.raises(UnsupportedFormatError, match="message format v0"):
        decode_header(bytes.fromhex(v0), 0, "0.log")


def test_unknown_attribute_bits_are_ignored() -> None:
    """F-4.3; Kafka's readers look at the low byte only."""
    header, records = read(with_field(two_records("NONE"), 21, ">H", 0x8180))
    assert records == TWO and header.codec is Codec.NONE


def test_a_payload_with_bytes_to_spare_is_corrupt_also_when_compressed() -> None:
    """F-4.8."""
    header = decode_header(two_records("ZSTD"), 0, "")
    doubled = two_records("ZSTD")[61:] * 2
    with pytest.raises(CorruptFileError, match="36 bytes are left after record 2, the last"):
        read(seal(header, doubled))
