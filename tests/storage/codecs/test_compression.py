"""Codecs: Kafka's bytes, what others write, damage, payloads that would eat memory (spec F-8)."""

import gzip
import zlib

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from storage.codecs.compression import (
    Codec,
    DecompressionError,
    compress,
    decompress,
    decompress_into,
)
from storage.codecs.lz4_block import ByteArray
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.formats.batch_header import BATCH_HEADER_BYTES
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from tests.storage.codecs.kafka_builds import ZSTD_HERE
from tests.storage.codecs.payloads import into, text
from tests.storage.kafka_batches import two_records

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
PLAIN = two_records("NONE")[BATCH_HEADER_BYTES:]
MEBIBYTE = 1 << 20

# One record of that many bytes of text(), key "k", 1000 ms, as Kafka 4.3.1 wrote it (and 4.4.0,
# but for zstd): size and CRC of the batch. Sizes lie at the limits of hash tables, blocks and
# windows.
VALUE_BYTES = (
    1,
    14,
    15,
    16,
    60,
    70,
    300,
    1000,
    3000,
    8192,
    8193,
    20000,
    40000,
    65537,
    140000,
    400000,
)
ZSTD_WROTE = {  # by the build of zstd: of 4.3.1, and of 4.4.0
    "1.5.6": [
        (82, 3711341706), (95, 2131832865), (96, 2419432517), (97, 2000756086),
        (132, 3240561370), (134, 69069439), (196, 2666533030), (370, 1504681849),
        (786, 2889091002), (1908, 4136583426), (1909, 3118146732), (4520, 4145072201),
        (9000, 4077172451), (14852, 3117247262), (32486, 515282644), (93878, 2724916294),
    ],
    "1.5.7": [
        (82, 3711341706), (95, 2131832865), (96, 2419432517), (97, 2000756086),
        (132, 3240561370), (134, 69069439), (196, 2666533030), (370, 1504681849),
        (786, 2889091002), (1909, 117084393), (1909, 4137985547), (4520, 2671577406),
        (8993, 2618819737), (14836, 2075880275), (32453, 1305893065), (93723, 828990194),
    ],
}  # fmt: skip
KAFKA_WROTE = {
    Codec.GZIP: [
        (90, 648901234), (103, 3070662262), (104, 2590177103), (105, 2988511321),
        (133, 3908837880), (136, 2354252072), (198, 3498120086), (367, 7988131),
        (823, 2148354457), (2067, 2050489760), (2069, 1157313252), (4783, 49859780),
        (9247, 544161152), (14807, 4115963720), (31026, 1291322656), (86748, 2031782519),
    ],
    Codec.SNAPPY: [
        (92, 189772499), (105, 803512510), (106, 4140461797), (107, 22322148),
        (146, 1266606436), (156, 1960866450), (258, 727015945), (569, 2263721592),
        (1374, 2017402717), (3494, 2010620060), (3487, 1513897642), (8009, 3620250362),
        (15762, 2251853563), (25261, 4136330879), (53899, 3726081196), (152478, 3783267751),
    ],
    Codec.LZ4: [
        (85, 2087033080), (98, 938114638), (99, 78439183), (100, 116486657),
        (135, 400797642), (139, 4272094579), (254, 3346013104), (584, 1582518100),
        (1426, 1760154692), (3558, 1599511955), (3558, 926287535), (8076, 2970356551),
        (15500, 3838431916), (24832, 3380440771), (53220, 2062941568), (150605, 1953745526),
    ],
    Codec.ZSTD: ZSTD_WROTE[ZSTD_HERE],
}  # fmt: skip


@pytest.mark.parametrize("codec", CODECS)
def test_the_golden_payload_is_written_and_read(codec: Codec) -> None:
    payload = two_records(codec.name)[BATCH_HEADER_BYTES:]
    assert compress(codec, PLAIN) == payload
    assert decompress(codec, payload, "0.log", 61) == PLAIN


@pytest.mark.parametrize(
    ("codec", "size", "expected"),
    [
        (codec, size, expected)
        for codec, written in KAFKA_WROTE.items()
        for size, expected in zip(VALUE_BYTES, written, strict=True)
    ],
)
def test_a_batch_compressed_again_is_kafkas_to_the_byte(
    codec: Codec, size: int, expected: tuple[int, int]
) -> None:
    """F-8.2 to F-8.5, C-11.11 d."""
    record = Record(0, 1000, b"k", text(size))
    batch = encode_batch([record], codec, BatchOptions(partition_leader_epoch=0))
    assert (len(batch), crc32c(batch[21:])) == expected


@pytest.mark.parametrize("codec", list(Codec))
@given(data=st.binary(max_size=300) | st.binary(min_size=1, max_size=4).map(lambda b: b * 40000))
def test_what_is_compressed_comes_back(codec: Codec, data: bytes) -> None:
    payload = compress(codec, data)
    assert decompress(codec, payload, "0.log", 0) == data
    assert into(codec, payload, len(data) + 70000, at=5) == data


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("size", [0, 1, 36, 5000, 32768, 32769, 65536, 131072, 200000])
def test_room_is_enough_or_none(codec: Codec, size: int) -> None:
    data = text(size)
    payload = compress(codec, data)
    assert into(codec, payload, size) == data
    assert into(codec, payload, size + 3, at=3) == data
    for missing in (1, 100):
        if missing <= size:
            assert into(codec, payload, size - missing) is None


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [36, 3000, 70000])
def test_a_payload_cut_short_anywhere_is_corrupt(codec: Codec, size: int) -> None:
    data = PLAIN if size == 36 else text(size)
    payload = compress(codec, data)
    step = 1 if len(payload) < 3000 else 97
    for kept in range(1, len(payload), step):
        try:
            decompressed = decompress(codec, payload[:kept], "0.log", 61)
        except CorruptFileError:
            continue
        # a snappy stream has no end mark: cut between blocks it is whole, as Kafka sees it, too
        assert codec is Codec.SNAPPY and data.startswith(decompressed)
        assert len(decompressed) % 32768 == 0


@pytest.mark.parametrize("codec", CODECS)
def test_a_flipped_byte_never_does_worse_than_an_error(codec: Codec) -> None:
    """Most codecs have no checksum of their own: the batch's CRC is what notices."""
    payload = compress(codec, text(300))
    for position in range(len(payload)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(payload)
            damaged[position] ^= flip
            try:
                decompress(codec, bytes(damaged), "0.log", 61, limit=MEBIBYTE)
            except CorruptFileError as error:
                assert error.position == 61


def test_an_unknown_codec_is_refused() -> None:
    for codec in (5, 6, 7, -1):
        with pytest.raises(UnsupportedFormatError, match=rf"0\.log, byte 61: codec {codec} "):
            decompress(codec, b"", "0.log", 61)


def zstd_bomb(mebibytes: int) -> bytes:
    """RLE blocks of 128 KiB, four bytes each, laid out by hand (RFC 8878, 3.1.1.2)."""
    block = (131072 << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    return bytes.fromhex("28b52ffd0058") + block * (8 * mebibytes) + bytes.fromhex("010000")


BOMBS = {
    Codec.GZIP: gzip.compress(bytes(64 * MEBIBYTE)),
    Codec.SNAPPY: compress(Codec.SNAPPY, bytes(64 * MEBIBYTE)),
    Codec.LZ4: compress(Codec.LZ4, bytes(64 * MEBIBYTE)),
    Codec.ZSTD: zstd_bomb(64),
}


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_ends_at_the_limit(codec: Codec) -> None:
    with pytest.raises(CorruptFileError, match="more than the limit of 1048576 bytes"):
        decompress(codec, BOMBS[codec], "0.log", 61, limit=MEBIBYTE)
    assert decompress(codec, BOMBS[codec], "0.log", 61) == bytes(64 * MEBIBYTE)
    assert into(codec, BOMBS[codec], MEBIBYTE) is None


def test_a_size_that_is_only_declared_costs_nothing() -> None:
    snappy = bytes.fromhex("ffffffff07") + b"\x00a"  # 2^31 - 1 bytes, in one literal of one
    with pytest.raises(CorruptFileError, match="7 bytes cannot hold 2147483647"):
        decompress(Codec.SNAPPY, snappy, "0.log", 0)
    one_raw_block = bytes.fromhex("0900 00") + b"a"
    zstd = bytes.fromhex("28b52ffd e0") + (2**40).to_bytes(8, "little") + one_raw_block
    with pytest.raises(CorruptFileError, match="1099511627776 bytes declared"):
        decompress(Codec.ZSTD, zstd, "0.log", 0)
    zstd = bytes.fromhex("28b52ffd 20 00") + one_raw_block
    with pytest.raises(CorruptFileError, match="0 bytes declared, but blocks for 1"):
        decompress(Codec.ZSTD, zstd, "0.log", 0)


def test_gzip_members_joined_and_followed_by_something_else() -> None:
    """F-8.2; what does not start like a member is ignored, as Java does."""
    joined = gzip.compress(b"ab") + gzip.compress(b"cd", compresslevel=9)
    assert decompress(Codec.GZIP, joined, "", 0) == b"abcd"
    assert decompress(Codec.GZIP, joined + b"\0\0", "", 0) == b"abcd"
    with pytest.raises(CorruptFileError, match="gzip"):
        decompress(Codec.GZIP, joined[:-3], "", 0)


def test_gzip_checks_its_crc() -> None:
    payload = bytearray(gzip.compress(b"ab"))
    payload[-8] ^= 1
    with pytest.raises(CorruptFileError, match="incorrect data check"):
        decompress(Codec.GZIP, bytes(payload), "", 0)


def test_errors_of_the_hot_path_say_which_codec() -> None:
    out: ByteArray = np.zeros(100, dtype=np.uint8)
    for codec in CODECS:
        with pytest.raises(DecompressionError, match=codec.name.lower()):
            decompress_into(codec, b"\xff" * 30, out, 0)


def test_zlib_is_the_one_that_gives_kafkas_bytes() -> None:
    """Other builds, zlib-ng for one, give valid gzip of other bytes (F-8.2)."""
    assert not zlib.ZLIB_RUNTIME_VERSION.endswith("zlib-ng")
