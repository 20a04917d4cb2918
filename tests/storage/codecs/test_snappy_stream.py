"""Snappy as Kafka frames it, and as others do (spec F-8.3)."""

import struct

import cramjam
import pytest
from crc32c import crc32c

from storage.codecs.compression import Codec, compress, decompress
from storage.errors import CorruptFileError
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from tests.storage.codecs.payloads import text


def test_small_snappy_blocks_are_kafkas_to_the_byte() -> None:
    """300 batches as above, each of other words; the number is the CRC of the CRCs Kafka gave them.

    The library that compresses larger blocks has 288 of the 301 otherwise.
    """
    crcs = []
    for size in [*range(3, 3 + 300 * 27, 27), 8182]:  # the last makes a payload of 8192 bytes
        record = Record(0, 1000, b"k", text(size, seed=size))
        batch = encode_batch([record], Codec.SNAPPY, BatchOptions(partition_leader_epoch=0))
        crcs.append(crc32c(batch[21:]))
    assert crc32c(struct.pack(">301I", *crcs)) == 2667768281


def test_snappy_without_the_xerial_frame() -> None:
    """As librdkafka: the whole payload is one raw block (F-8.3)."""
    data = text(100_000)
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(data)), "", 0) == data


@pytest.mark.parametrize("tail", [b"\0", b"\0\0", b"\xff\xff\xff"])
def test_too_few_bytes_for_another_block_end_a_stream(tail: bytes) -> None:
    """As SnappyInputStream.hasNextChunk; four bytes are a length again (F-8.3)."""
    assert decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b"ab") + tail, "", 0) == b"ab"
    with pytest.raises(CorruptFileError, match="a block of -1 bytes"):
        decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b"ab") + bytes.fromhex("ffffffff"), "", 0)


def test_snappy_streams_joined() -> None:
    joined = compress(Codec.SNAPPY, b"ab") + compress(Codec.SNAPPY, b"cd")
    assert decompress(Codec.SNAPPY, joined, "", 0) == b"abcd"
    other_versions = joined.replace(
        bytes.fromhex("0000000100000001"), bytes.fromhex("0000000200000000")
    )
    assert decompress(Codec.SNAPPY, other_versions, "", 0) == b"abcd"
    assert decompress(Codec.SNAPPY, joined[:16], "", 0) == b""
    with pytest.raises(CorruptFileError, match="stream header is cut short"):
        decompress(Codec.SNAPPY, joined + joined[:9], "", 0)
