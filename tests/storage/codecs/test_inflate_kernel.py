"""Deflate streams taken apart by a kernel: what it takes zlib takes, to the same bytes."""

import zlib
from collections.abc import Iterator
from itertools import accumulate
from random import Random

import numpy as np
import pytest

from storage.codecs import inflate_kernel
from storage.codecs.inflate_kernel import FOLLOWING_BYTES, MARGIN, NOT_TAKEN, inflate
from tests.storage.codecs.random_data import SIZES, random_data

Taken = tuple[bytes, int] | None  # what came out, and how much of the stream was read
TABLES = np.empty(inflate_kernel.TABLE_SLOTS, np.uint32)
ROOM = 300_000
LITERALS = [257, 270, *[280] * 5, *[286] * 5, 287, 288]
DISTANCES = [1, 2, 10, *[20] * 5, *[30] * 5, 31, 32]
STRATEGIES = [
    zlib.Z_DEFAULT_STRATEGY,
    zlib.Z_FILTERED,
    zlib.Z_HUFFMAN_ONLY,
    zlib.Z_RLE,
    zlib.Z_FIXED,
]


def by_kernel(stream: bytes, room: int = ROOM) -> Taken:
    """room: beside the margin; there is nothing behind it, nor behind the stream."""
    source = np.frombuffer(b"ab" + stream + bytes(FOLLOWING_BYTES), np.uint8).copy()
    out = np.empty(3 + room + MARGIN, np.uint8)
    behind, end = inflate(source, (2, len(source)), out, (3, len(out)), TABLES)
    if end == NOT_TAKEN:
        assert behind == NOT_TAKEN
        return None
    return out[3:end].tobytes(), behind - 2


def by_zlib(stream: bytes) -> Taken:
    inflating = zlib.decompressobj(-15)
    try:
        found = inflating.decompress(stream)
    except zlib.error:
        return None
    return (found, len(stream) - len(inflating.unused_data)) if inflating.eof else None


def deflated(data: bytes, level: int, memory: int, strategy: int) -> bytes:
    deflating = zlib.compressobj(level, zlib.DEFLATED, -15, memory, strategy)
    half = len(data) // 2
    flushed = deflating.compress(data[:half]) + deflating.flush(zlib.Z_FULL_FLUSH)
    return flushed + deflating.compress(data[half:]) + deflating.flush()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("level", [0, 1, 6, 9])
def test_whatever_zlib_writes_is_taken(level: int, strategy: int) -> None:
    chance = Random(level)
    for size in (*SIZES, 66_000, 200_000):
        data = random_data(chance, (size,))
        stream = deflated(data, level, chance.randint(1, 9), strategy)
        assert by_kernel(stream) == (data, len(stream))
        if len(data) > MARGIN:
            assert by_kernel(stream, len(data) - MARGIN - 1) is None


def test_every_bit_flipped_and_every_length() -> None:
    """Without a checksum over it, much of what is damaged is a stream still: the same for both."""
    chance, taken = Random(1), 0
    for level, strategy in [(6, zlib.Z_DEFAULT_STRATEGY), (6, zlib.Z_FIXED), (0, 0)]:
        stream = bytearray(deflated(random_data(chance, (300,)), level, 8, strategy))
        for bit in range(8 * len(stream)):
            stream[bit >> 3] ^= 1 << (bit & 7)
            found = by_kernel(bytes(stream))
            assert found == by_zlib(bytes(stream))
            taken += found is not None
            stream[bit >> 3] ^= 1 << (bit & 7)
        for length in range(len(stream)):
            assert by_kernel(bytes(stream[:length])) is None
    assert taken > 100


class Bits:
    """A stream as it is written: the lowest bit of a byte first."""

    def __init__(self) -> None:
        self._value = self._count = 0

    def put(self, value: int, count: int) -> None:
        self._value |= (value & (1 << count) - 1) << self._count
        self._count += count

    def put_code(self, code: tuple[int, int]) -> None:
        """A Huffman code: its highest bit first."""
        value, count = code
        self.put(int(f"{value:0{count}b}"[-1 : -count - 1 : -1] or "0", 2), count)

    def bytes(self) -> bytes:
        return self._value.to_bytes((self._count + 7) // 8, "little")


def codes_of(lengths: list[int]) -> list[tuple[int, int]]:
    """The canonical codes of symbols, by their lengths (RFC 1951, 3.2.2)."""
    counts = [lengths.count(length) if length else 0 for length in range(17)]
    first = list(accumulate(counts, lambda code, count: (code + count) << 1, initial=0))
    codes = []
    for symbol, length in enumerate(lengths):
        before = lengths[:symbol].count(length)
        codes.append(((first[length] if length else 0) + before, length))
    return codes


def lengths_of_a_code(chance: Random, symbols: int, longest: int) -> list[int]:
    """Of a code that is whole, or nearly so."""
    leaves = [0]
    while len(leaves) < symbols and chance.random() < 0.98:
        leaf = leaves.pop(chance.randrange(len(leaves)))
        leaves += [leaf] if leaf == longest else [leaf + 1, leaf + 1]
    if chance.random() < 0.05:
        leaves[chance.randrange(len(leaves))] = chance.randint(0, longest)
    leaves += [0] * (symbols - len(leaves))
    chance.shuffle(leaves)
    return leaves


def described(chance: Random, bits: Bits, literals: list[int], distances: list[int]) -> None:
    """The header of a dynamic block; seldom as it has to be."""
    order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]
    bits.put(len(literals) - 257, 5)
    bits.put(len(distances) - 1, 5)
    bits.put(15, 4)
    lengths = lengths_of_a_code(chance, 19, 7) if chance.random() < 0.5 else [5] * 13 + [4] * 6
    lengths = [4] * 13 + [5] * 6 if chance.random() < 0.9 else lengths
    for symbol in order:
        bits.put(lengths[symbol], 3)
    codes = codes_of(lengths)
    for length in literals + distances:
        if chance.random() < 0.002:
            symbol = chance.choice([16, 17, 18])
            bits.put_code(codes[symbol])
            bits.put(chance.getrandbits(7), {16: 2, 17: 3, 18: 7}[symbol])
        else:
            bits.put_code(codes[length])


def made_streams(chance: Random) -> Iterator[bytes]:
    """Blocks with codes of all shapes, symbols of all kinds among them those that must not be."""
    while True:
        bits = Bits()
        for is_last in (0, 1):
            bits.put(is_last, 1)
            literals, distances = [8] * 144 + [9] * 112 + [7] * 24 + [8] * 8, [5] * 32
            if chance.random() < 0.2:
                bits.put(1, 2)
            else:
                bits.put(2, 2)
                literals = lengths_of_a_code(chance, chance.choice(LITERALS), 15)
                if chance.random() < 0.9:  # the end of the block has a code
                    first = next((symbol for symbol, length in enumerate(literals) if length), 256)
                    literals[256], literals[first] = literals[first], literals[256]
                distances = lengths_of_a_code(chance, chance.choice(DISTANCES), 15)
                described(chance, bits, literals, distances)
            literal_codes, distance_codes = codes_of(literals), codes_of(distances)
            used = [symbol for symbol, length in enumerate(literals) if length]
            reached = [symbol for symbol, length in enumerate(distances) if length] or [0]
            for _ in range(chance.choice([3, 30])):
                symbol = chance.choice(used or [0])
                symbol = chance.choice([symbol, min(symbol, 255)])
                bits.put_code(literal_codes[symbol])
                if symbol > 256:
                    extra = 0 if symbol < 265 or symbol > 284 else (symbol - 261) // 4
                    bits.put(chance.getrandbits(5), extra)
                    symbol = chance.choice(reached)
                    symbol = chance.choice([symbol, reached[0]])
                    bits.put_code(distance_codes[symbol])
                    extra = max(0, symbol // 2 - 1)
                    bits.put(chance.choice([0, chance.getrandbits(13)]), extra)
            bits.put_code(literal_codes[256])
        yield bits.bytes()


def test_of_made_streams_none_is_taken_that_zlib_refuses() -> None:
    taken = refused = left = 0
    streams = made_streams(Random(1))
    for _ in range(400):
        stream = next(streams)
        found, expected = by_kernel(stream), by_zlib(stream)
        if found is None:
            refused += expected is None
            left += expected is not None
        else:
            assert found == expected
            taken += 1
    assert taken > 20
    assert refused > 50
    assert left == 0
