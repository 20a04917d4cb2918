"""SipHash-2-4 with 128 bits: published vectors, a slow twin, and why it is not a faster hash."""

import random
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from storage.formats.batch_columns import SLACK_BYTES
from storage.kernels.key_hash import (
    LANES,
    MAX_LENGTH,
    MAX_WORDS,
    empty_queues,
    hash_key,
    hash_waiting,
    put_key,
)
from tests.storage.kernels.another_processor import WITHOUT_WIDE_VECTORS, shown_by, vectors_in

MASK = 2**64 - 1
KEY_LOW, KEY_HIGH = 0x0706050403020100, 0x0F0E0D0C0B0A0908  # bytes 00 01 02 … 0f
UINT64 = st.integers(0, MASK)

Digest = tuple[int, int]


@cache
def compiled() -> Callable[..., Digest]:
    """Not cached between processes: numba would not notice that what is inlined has changed."""

    @njit
    def call(buffer, position, length, low, high):  # type: ignore[no-untyped-def]
        return hash_key(buffer, position, length, low, high)

    kernel: Callable[..., Digest] = call
    return kernel


def kernel_hash(
    key: bytes, low: int, high: int, before: bytes = b"", behind: bytes = b""
) -> Digest:
    data = before + key + behind.ljust(SLACK_BYTES, b"\0")
    first, second = compiled()(
        np.frombuffer(data, np.uint8), len(before), len(key), np.uint64(low), np.uint64(high)
    )
    return int(first), int(second)


def slow_hash(key: bytes, low: int, high: int) -> Digest:
    """After the paper and the reference code's variant with 128 bits of output."""
    v = [
        low ^ 0x736F6D6570736575,
        high ^ 0x646F72616E646F6D ^ 0xEE,
        low ^ 0x6C7967656E657261,
        high ^ 0x7465646279746573,
    ]

    def rotated(x: int, bits: int) -> int:
        return (x << bits | x >> 64 - bits) & MASK

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = rotated(v[1], 13) ^ v[0]
            v[0] = rotated(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = rotated(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = rotated(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = rotated(v[1], 17) ^ v[2]
            v[2] = rotated(v[2], 32)

    padded = key + bytes(7 - len(key) % 8) + bytes([len(key) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE
    rounds(4)
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(4)
    return first, v[0] ^ v[1] ^ v[2] ^ v[3]


@pytest.mark.parametrize(
    ("length", "digest"),
    [  # made with OpenSSL: messages 00 01 02 … of that length
        (0, "A3817F04BA25A8E66DF67214C7550293"),
        (1, "DA87C1D86B99AF44347659119B22FC45"),
        (15, "5493E99933B0A8117E08EC0F97CFC3D9"),
    ],
)
@pytest.mark.parametrize("of", [kernel_hash, slow_hash])
def test_published_vectors(
    of: Callable[[bytes, int, int], Digest], length: int, digest: str
) -> None:
    first, second = of(bytes(range(length)), KEY_LOW, KEY_HIGH)
    assert struct.pack("<QQ", first, second).hex().upper() == digest


@pytest.mark.parametrize("length", [*range(33), 255, 256, 257, 1000])
def test_the_kernel_is_its_slow_twin_at_every_length(length: int) -> None:
    key = random.Random(length).randbytes(length)
    assert kernel_hash(key, KEY_LOW, KEY_HIGH) == slow_hash(key, KEY_LOW, KEY_HIGH)


@given(st.binary(max_size=40), UINT64, UINT64, st.binary(max_size=9), st.binary(max_size=9))
def test_only_the_key_counts_wherever_it_stands(
    key: bytes, low: int, high: int, before: bytes, behind: bytes
) -> None:
    assert kernel_hash(key, low, high, before, behind) == slow_hash(key, low, high)


def crafted_pair() -> tuple[bytes, bytes]:
    """Two keys that XXH64 takes for one under every second seed, whoever knows no seed at all.

    Each of the four lanes of XXH64 takes a word in, rotates by 31 and multiplies. What is added to
    the first word turns only the top bit of its lane over, so bit 30 after the rotation; what is
    added to the fifth word, the same lane's next, makes up for that where the bit has been cleared.
    """
    prime_1, prime_2 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F
    inverse_2 = pow(prime_2, -1, 2**64)
    words = [random.Random(4).getrandbits(64) for _ in range(8)]
    others = list(words)
    others[0] = (others[0] + 2**63 * inverse_2) & MASK
    others[4] = (others[4] + 2**30 * prime_1 * inverse_2) & MASK
    return struct.pack("<8Q", *words), struct.pack("<8Q", *others)


def test_why_not_xxh64_with_a_secret_seed() -> None:
    one, other = crafted_pair()
    assert one != other
    seeds = [random.Random(seed).getrandbits(64) for seed in range(400)]
    collisions = sum(
        xxhash.xxh64_intdigest(one, seed) == xxhash.xxh64_intdigest(other, seed) for seed in seeds
    )
    assert 120 < collisions < 280
    for seed in seeds:
        ours = kernel_hash(one, seed, ~seed & MASK), kernel_hash(other, seed, ~seed & MASK)
        assert ours[0][0] != ours[1][0]
        assert ours[0][1] != ours[1][1]


UNTOUCHED = 77


@cache
def compiled_lanes() -> Callable[..., None]:
    """Not cached between processes: numba would not notice that what is inlined has changed."""

    @njit
    def call(buffer, edges, secret, first_hash, second_hash):  # type: ignore[no-untyped-def]
        queues = empty_queues()
        for i in range(len(edges) - 1):
            words = put_key(queues, buffer, edges[i], edges[i + 1] - edges[i], i)
            if words:
                hash_waiting(queues, words, secret, first_hash, second_hash)
        for words in range(1, MAX_WORDS + 1):
            hash_waiting(queues, words, secret, first_hash, second_hash)

    kernel: Callable[..., None] = call
    return kernel


def hashes_of(keys: list[bytes]) -> list[Digest]:
    edges = np.cumsum([0, *map(len, keys)]).astype(np.int64)
    buffer = np.frombuffer(b"".join(keys) + b"\xff" * SLACK_BYTES, np.uint8).copy()
    columns = [np.full(len(keys) + 1, UNTOUCHED, np.uint64) for _ in range(2)]
    secret: Any = np.uint64(KEY_LOW), np.uint64(KEY_HIGH)
    compiled_lanes()(buffer, edges, secret, *columns)
    assert all(column[-1] == UNTOUCHED for column in columns)
    return list(zip(*(column[:-1].tolist() for column in columns), strict=True))


def differing(seed: int, count: int, lengths: range) -> list[bytes]:
    chance = Random(seed)
    keys = [chance.randbytes(chance.choice(lengths)) for _ in range(count)]
    found = zip(keys, hashes_of(keys), strict=True)
    return [key for key, digest in found if digest != slow_hash(key, KEY_LOW, KEY_HIGH)]


@pytest.mark.parametrize("length", range(MAX_LENGTH + 1))
def test_keys_of_one_length_fill_every_lane_and_leave_some_waiting(length: int) -> None:
    assert differing(length, 2 * LANES + 3, range(length, length + 1)) == []


@pytest.mark.parametrize("count", range(2 * LANES + 1))
def test_any_number_of_keys(count: int) -> None:
    assert differing(count, count, range(20)) == []


@pytest.mark.parametrize("seed", range(20))
def test_keys_of_all_lengths_in_any_order(seed: int) -> None:
    assert differing(seed, 300, range(MAX_LENGTH + 1)) == []


def test_they_are_the_same_on_a_processor_without_wide_vectors(tmp_path: Path) -> None:
    """Kernels are compiled for one, which is not this one."""
    code = (
        "from tests.storage.kernels.test_key_hash import compiled_lanes, differing\n"
        "print(differing(1, 300, range(64)))\n"
    )
    assert shown_by(code + vectors_in("compiled_lanes()"), tmp_path) == ["[]", WITHOUT_WIDE_VECTORS]
