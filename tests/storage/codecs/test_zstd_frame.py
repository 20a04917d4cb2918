"""Frames of zstd: joined, with and without sizes, checksums and content (spec F-8.5)."""

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from storage.codecs.compression import Codec, compress, decompress
from storage.errors import CorruptFileError
from tests.storage.codecs.payloads import into, text


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
