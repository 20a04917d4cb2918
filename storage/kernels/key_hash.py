"""Keyed 128-bit hash of record keys: SipHash-2-4 with 128 bits of output.

Two records are taken to have the same key when their hashes are equal, so nobody who can produce
to a topic may be able to make two keys collide. A secret seed does not make a fast mixer safe: for
XXH64 there are pairs of 64-byte keys that collide under every second seed. SipHash is a keyed
pseudo-random function. Source: Aumasson and Bernstein, SipHash: a fast short-input PRF, 2012.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.kernels.kernel import inlined
from storage.kernels.memory_access import load_le_uint64


@inlined
def _rotate(x: Any, bits: int) -> Any:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@inlined
def _round(v0: Any, v1: Any, v2: Any, v3: Any) -> tuple[Any, Any, Any, Any]:
    v0 += v1
    v2 += v3
    v1 = _rotate(v1, 13) ^ v0
    v3 = _rotate(v3, 16) ^ v2
    v0 = _rotate(v0, 32)
    v2 += v1
    v0 += v3
    v1 = _rotate(v1, 17) ^ v2
    v3 = _rotate(v3, 21) ^ v0
    v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


@inlined
def hash_key(
    buffer: NDArray[np.uint8], position: int, length: int, key_low: np.uint64, key_high: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """Return the hash of buffer[position : position + length] as two uint64.

    Up to seven bytes behind the key are read and masked away: the caller's buffer has that slack.
    """
    v0 = key_low ^ np.uint64(0x736F6D6570736575)
    v1 = key_high ^ np.uint64(0x646F72616E646F6D ^ 0xEE)  # 0xee: the variant with 128 bits
    v2 = key_low ^ np.uint64(0x6C7967656E657261)
    v3 = key_high ^ np.uint64(0x7465646279746573)
    end = position + (length & ~7)
    while position < end:
        word = load_le_uint64(buffer, position)
        v3 ^= word
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= word
        position += 8
    word = np.uint64(length & 0xFF) << np.uint64(56)
    rest = length & 7
    if rest:
        mask = (np.uint64(1) << np.uint64(8 * rest)) - np.uint64(1)
        word |= load_le_uint64(buffer, position) & mask
    v3 ^= word
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0 ^= word
    v2 ^= np.uint64(0xEE)
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    first = v0 ^ v1 ^ v2 ^ v3
    v1 ^= np.uint64(0xDD)
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return first, v0 ^ v1 ^ v2 ^ v3
