"""Codecs: Kafka's bytes, what others write, damage, payloads that would eat memory (spec F-8)."""

import gzip
import random
import struct
import zlib

import cramjam
import numpy as np
import pytest
import xxhash
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from storage.codecs.compression import (
    ByteArray,
    Codec,
    DecompressionError,
    compress,
    decompress,
    decompress_into,
)
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.formats.batch_header import BATCH_HEADER_BYTES
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from storage.kernels.crc32c import crc32c
from tests.storage.kafka_batches import two_records

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
PLAIN = two_records("NONE")[BATCH_HEADER_BYTES:]
MEBIBYTE = 1 << 20

# One record of that many bytes of text(), key "k", 1000 ms, as Kafka 4.3.1 wrote it: size and CRC
# of the batch. Sizes lie at the limits of hash tables, blocks and windows.
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
    Codec.ZSTD: [
        (82, 3711341706), (95, 2131832865), (96, 2419432517), (97, 2000756086),
        (132, 3240561370), (134, 69069439), (196, 2666533030), (370, 1504681849),
        (786, 2889091002), (1908, 4136583426), (1909, 3118146732), (4520, 4145072201),
        (9000, 4077172451), (14852, 3117247262), (32486, 515282644), (93878, 2724916294),
    ],
}  # fmt: skip


def text(size: int, seed: int = 7) -> bytes:
    """Words, half of them the same: compressible, but not by much."""
    rng = random.Random(seed)
    words: list[str] = []
    length = 0
    while length < size:
        word = "compaction"
        if rng.random() < 0.5:
            word = format(int(rng.random() * 2**30), "o")[: 1 + int(rng.random() * 9)]
        words.append(word)
        length += len(words[-1])
    return "".join(words)[:size].encode()


def into(codec: Codec, payload: bytes, room: int, at: int = 0) -> bytes | None:
    out: ByteArray = np.zeros(room, dtype=np.uint8)
    end = decompress_into(codec, payload, out, at)
    return None if end is None else out[at:end].tobytes()


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


def test_an_lz4_block_that_saves_nothing_is_stored() -> None:
    """F-8.4, as Kafka wrote it: compressed it would take the same 60 bytes."""
    frame = bytes.fromhex(
        "04224d186040823c00008076000000026b685c3974535b5d7453593e6558594d70413b754d316a3b77336a6d44"
        "5c754d6b50665b78754d6b50664b325543626a704f6e5b584e0000000000"
    )
    payload = frame[11:-4]
    assert len(cramjam.lz4.compress_block(payload, store_size=False)) == len(payload)
    assert compress(Codec.LZ4, payload) == frame


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


# What other producers write


def test_snappy_without_the_xerial_frame() -> None:
    """As librdkafka: the whole payload is one raw block (F-8.3)."""
    data = text(100_000)
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(data)), "", 0) == data


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


def test_zstd_frames_joined_with_sizes_and_checksums() -> None:
    """F-8.5. librdkafka writes the content size; skippable frames hold nothing."""
    sized = zstandard.ZstdCompressor(level=1, write_checksum=True).compress(text(300_000))
    skippable = bytes.fromhex("502a4d18 03000000 616263")
    plain = compress(Codec.ZSTD, b"tail")
    joined = sized + skippable + plain
    assert decompress(Codec.ZSTD, joined, "", 0) == text(300_000) + b"tail"
    assert into(Codec.ZSTD, joined, 300_003) is None
    with pytest.raises(CorruptFileError, match="not a frame: it starts with 7a7a"):
        decompress(Codec.ZSTD, plain + b"zzzz", "", 0)
    for kept in range(len(plain) + 1, len(plain) + len(skippable)):
        with pytest.raises(CorruptFileError, match="zstd"):
            decompress(Codec.ZSTD, (plain + skippable)[:kept], "", 0)
    damaged = sized[:-1] + bytes([sized[-1] ^ 1])
    with pytest.raises(CorruptFileError, match="zstd"):
        decompress(Codec.ZSTD, damaged, "", 0)


def test_zstd_frames_that_declare_their_size_in_two_bytes() -> None:
    """RFC 8878, 3.1.1.1.4: 256 is added to what stands there."""
    frame = zstandard.ZstdCompressor(level=3).compress(text(300))
    assert frame[4] >> 6 == 1
    assert into(Codec.ZSTD, frame, 299) is None
    assert into(Codec.ZSTD, frame, 300) == text(300)


def test_zstd_frames_without_content() -> None:
    empty = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compress(b"")
    assert decompress(Codec.ZSTD, empty, "", 0) == b""
    for kept in range(1, len(empty)):
        with pytest.raises(CorruptFileError, match="zstd"):
            decompress(Codec.ZSTD, empty[:kept], "", 0)


def test_zstd_ends_with_the_block_that_says_so() -> None:
    frame = bytearray(compress(Codec.ZSTD, text(300)))
    frame[6] |= 1  # the first block is the last: what follows it is no frame
    with pytest.raises(CorruptFileError, match="zstd"):
        decompress(Codec.ZSTD, bytes(frame), "", 0)


@given(
    st.binary(max_size=200),
    st.booleans(),
    st.sampled_from([-5, 1, 3, 19]),
)
def test_zstd_of_any_level(data: bytes, has_size: bool, level: int) -> None:
    frame = zstandard.ZstdCompressor(level=level, write_content_size=has_size).compress(data)
    assert decompress(Codec.ZSTD, frame, "", 0) == data


def lz4_frame(flags: int, descriptor: int, blocks: list[bytes], tail: bytes = bytes(4)) -> bytes:
    """Laid out by hand from the LZ4 frame format; content size and checksums as the flags say."""
    header = bytes([flags, descriptor]) + (struct.pack("<Q", 0) if flags & 0x08 else b"")
    checked = header + bytes([xxhash.xxh32_intdigest(header) >> 8 & 0xFF])
    framed = b""
    for block in blocks:
        framed += struct.pack("<I", len(block) | 0x80000000) + block  # stored
        if flags & 0x10:
            framed += struct.pack("<I", xxhash.xxh32_intdigest(block))
    return bytes.fromhex("04224d18") + checked + framed + tail


@pytest.mark.parametrize("flags", [0x60, 0x68, 0x70, 0x78, 0x64, 0x7C])
@pytest.mark.parametrize("descriptor", [0x40, 0x50, 0x60, 0x70])
def test_lz4_frames_of_other_writers(flags: int, descriptor: int) -> None:
    """F-8.4: any block size; content size and checksum skipped, block checksums verified."""
    blocks = [text(65536), b"end"]
    tail = bytes(4) + (b"\xde\xad\xbe\xef" if flags & 0x04 else b"")
    frame = lz4_frame(flags, descriptor, blocks, tail)
    assert decompress(Codec.LZ4, frame, "", 0) == text(65536) + b"end"
    assert decompress(Codec.LZ4, frame + b"ignored", "", 0) == text(65536) + b"end"
    for kept in range(25):
        with pytest.raises(CorruptFileError, match="lz4"):
            decompress(Codec.LZ4, frame[:kept], "", 0)


def test_lz4_large_blocks_are_read() -> None:
    data = text(300_000)
    block = bytes(cramjam.lz4.compress_block(data, store_size=False))
    header = bytes.fromhex("04224d18 6070") + bytes(
        [xxhash.xxh32_intdigest(b"\x60\x70") >> 8 & 0xFF]
    )
    frame = header + struct.pack("<I", len(block)) + block + bytes(4)
    assert decompress(Codec.LZ4, frame, "", 0) == data


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        (lz4_frame(0x40, 0x40, [b"a"]), "blocks depend on each other"),
        (lz4_frame(0xA0, 0x40, [b"a"]), "another version"),
        (lz4_frame(0x61, 0x40, [b"a"]), "another version or kind"),
        (lz4_frame(0x60, 0x41, [b"a"]), "another version or kind"),
        (lz4_frame(0x60, 0x30, [b"a"]), "block size code 3"),
        (lz4_frame(0x60, 0x40, [bytes(65537)]), "a block of 65537 bytes"),
        (lz4_frame(0x60, 0x40, [b"a"], tail=b""), "end mark is missing"),
        (
            lz4_frame(0x60, 0x40, [b"a"]).replace(b"\x60\x40\x82", b"\x60\x40\x1a"),
            "header checksum",
        ),
        (lz4_frame(0x70, 0x40, [b"a"]).replace(b"\x80a", b"\x80b"), "block checksum"),
        (b"plain", "not a frame"),
    ],
)
def test_lz4_frames_that_kafka_does_not_read(frame: bytes, problem: str) -> None:
    with pytest.raises(CorruptFileError, match=problem):
        decompress(Codec.LZ4, frame, "", 0)


def test_errors_of_the_hot_path_say_which_codec() -> None:
    out: ByteArray = np.zeros(100, dtype=np.uint8)
    for codec in CODECS:
        with pytest.raises(DecompressionError, match=codec.name.lower()):
            decompress_into(codec, b"\xff" * 30, out, 0)


def test_zlib_is_the_one_that_gives_kafkas_bytes() -> None:
    """Other builds, zlib-ng for one, give valid gzip of other bytes (F-8.2)."""
    assert not zlib.ZLIB_RUNTIME_VERSION.endswith("zlib-ng")
