"""XXH64 inside of kernels, with seed 0: the digest of the few bytes that XXH3 has other ways for.

Source: xxHash, doc/xxhash_spec.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import load_le_uint64

_PRIME_1 = np.uint64(0x9E3779B185EBCA87)
_PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_PRIME_3 = np.uint64(0x165667B19E3779F9)
_PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
_PRIME_5 = np.uint64(0x27D4EB2F165667C5)
_FIRST_SEED = np.uint64(0x60EA27EEADC0B5D6)  # of the first of four, PRIME_1 + PRIME_2
_LAST_SEED = np.uint64(0x61C8864E7A143579)  # of the fourth, 0 - PRIME_1
_ZERO = np.uint64(0)


@inlined
def _rotated(value: Any, bits: int) -> Any:
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@inlined
def _stirred(state: Any, word: Any) -> Any:
    return _rotated(state + word * _PRIME_2, 31) * _PRIME_1


@inlined
def _merged(digest: Any, state: Any) -> Any:
    return (digest ^ _stirred(_ZERO, state)) * _PRIME_1 + _PRIME_4


@kernel
def xxh64_between(buffer: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """The digest of buffer[start:end]."""
    at: Any = np.int64(start)
    digest: Any = _PRIME_5
    if end - at >= 32:
        first, second, third, fourth = _FIRST_SEED, _PRIME_2, _ZERO, _LAST_SEED
        while end - at >= 32:
            first = _stirred(first, load_le_uint64(buffer, at))
            second = _stirred(second, load_le_uint64(buffer, at + 8))
            third = _stirred(third, load_le_uint64(buffer, at + 16))
            fourth = _stirred(fourth, load_le_uint64(buffer, at + 24))
            at += 32
        digest = _rotated(first, 1) + _rotated(second, 7)
        digest += _rotated(third, 12) + _rotated(fourth, 18)
        digest = _merged(_merged(_merged(_merged(digest, first), second), third), fourth)
    digest += np.uint64(end - start)
    while end - at >= 8:
        word = _stirred(_ZERO, load_le_uint64(buffer, at))
        digest = _rotated(digest ^ word, 27) * _PRIME_1 + _PRIME_4
        at += 8
    if end - at >= 4:
        half = np.uint64(0)
        for k in range(4):
            half |= np.uint64(buffer[at + k]) << np.uint64(8 * k)
        digest = _rotated(digest ^ half * _PRIME_1, 23) * _PRIME_2 + _PRIME_3
        at += 4
    while at < end:
        digest = _rotated(digest ^ np.uint64(buffer[at]) * _PRIME_5, 11) * _PRIME_1
        at += 1
    digest = (digest ^ (digest >> np.uint64(33))) * _PRIME_2
    digest = (digest ^ (digest >> np.uint64(29))) * _PRIME_3
    return np.uint64(digest ^ (digest >> np.uint64(32)))
