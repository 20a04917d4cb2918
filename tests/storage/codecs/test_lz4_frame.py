"""Frames of lz4: Kafka's, those of others, and those that Kafka does not read (spec F-8.4)."""

import struct

import cramjam
import pytest
import xxhash

from storage.codecs.compression import Codec, compress, decompress
from storage.errors import CorruptFileError
from tests.storage.codecs.payloads import text


def test_an_lz4_block_that_saves_nothing_is_stored() -> None:
    """F-8.4, as Kafka wrote it: compressed it would take the same 60 bytes."""
    frame = bytes.fromhex(
        "04224d186040823c00008076000000026b685c3974535b5d7453593e6558594d70413b754d316a3b77336a6d44"
        "5c754d6b50665b78754d6b50664b325543626a704f6e5b584e0000000000"
    )
    payload = frame[11:-4]
    assert len(cramjam.lz4.compress_block(payload, store_size=False)) == len(payload)
    assert compress(Codec.LZ4, payload) == frame


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
        (lz4_frame(0x64, 0x40, [b"a"]), "content checksum is cut short"),
        (lz4_frame(0x7C, 0x70, [b"a"], tail=bytes(7)), "content checksum is cut short"),
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
