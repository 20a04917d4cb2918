"""Digests of bytes in memory, inside of kernels, to notice when the bytes change.

XXH3 of 64 bits where there are more than 240 bytes, XXH64 of fewer: nobody else reads them. Eight
words are taken in at once, by LLVM's own vectors: a processor with narrower ones takes them in
parts, and one without any word by word. Source: xxHash, doc/xxhash_spec.md, "XXH3 Algorithm (for
long inputs)" and XXH64; with seed 0 and the default secret.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import load_le_uint64

SHORT_BYTES = 240  # up to here XXH3 goes other ways

_SECRET = np.frombuffer(
    bytes.fromhex(
        "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578"
        "825ad07dccff7221b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea3"
        "71644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931"
        "c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
        "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
    ),
    np.uint8,
)
_STRIPE_BYTES, _BLOCK_STRIPES, _SECRET_STEP = 64, 16, 8
_BLOCK_BYTES = _STRIPE_BYTES * _BLOCK_STRIPES
_SCRAMBLE_AT, _LAST_STRIPE_AT, _MERGE_AT = 128, 121, 11  # in the secret
_PRIME32 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_PRIME64 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_START = (_PRIME32[2], *_PRIME64[:4], _PRIME32[1], _PRIME64[4], _PRIME32[0])
_AVALANCHE = 0x165667919E3779F9

_allocate: Any = cgutils.alloca_once  # untyped
_LANES = 8
_WORD, _WIDE, _BYTE = ir.IntType(64), ir.IntType(128), ir.IntType(8)
_VECTOR = ir.VectorType(_WORD, _LANES)
_NEIGHBOURS = ir.Constant(ir.VectorType(ir.IntType(32), _LANES), [i ^ 1 for i in range(_LANES)])


def _all(number: int) -> Any:
    return ir.Constant(_VECTOR, [number] * _LANES)


def _word(number: int) -> Any:
    return ir.Constant(_WORD, number)


class _Digest:
    """Writes the instructions of one digest."""

    def __init__(self, builder: Any, data: Any, secret: Any) -> None:
        """data, secret: pointers to their bytes."""
        self._builder, self._data, self._secret = builder, data, secret
        self._state = _allocate(builder, _VECTOR)
        builder.store(ir.Constant(_VECTOR, list(_START)), self._state)

    def _vector(self, pointer: Any, at: Any) -> Any:
        address = self._builder.gep(pointer, [at])
        return self._builder.load(self._builder.bitcast(address, _VECTOR.as_pointer()), align=1)

    def take_stripe(self, at: Any, secret_at: Any) -> None:
        builder = self._builder
        words = self._vector(self._data, at)
        keyed = builder.xor(words, self._vector(self._secret, secret_at))
        low, high = builder.and_(keyed, _all(0xFFFFFFFF)), builder.lshr(keyed, _all(32))
        swapped = builder.shuffle_vector(words, words, _NEIGHBOURS)
        state = builder.add(builder.load(self._state), swapped)
        builder.store(builder.add(state, builder.mul(low, high)), self._state)

    def take_stripes(self, at: Any, count: Any) -> None:
        builder = self._builder
        with cgutils.for_range(builder, count) as loop:
            place = builder.add(at, builder.mul(loop.index, _word(_STRIPE_BYTES)))
            self.take_stripe(place, builder.mul(loop.index, _word(_SECRET_STEP)))

    def scramble(self) -> None:
        builder = self._builder
        state = builder.load(self._state)
        state = builder.xor(state, builder.lshr(state, _all(47)))
        state = builder.xor(state, self._vector(self._secret, _word(_SCRAMBLE_AT)))
        builder.store(builder.mul(state, _all(_PRIME32[0])), self._state)

    def finish(self, length: Any) -> Any:
        builder = self._builder
        keyed = builder.xor(builder.load(self._state), self._vector(self._secret, _word(_MERGE_AT)))
        result = builder.mul(length, _word(_PRIME64[0]))
        for i in range(0, _LANES, 2):
            pair = (builder.extract_element(keyed, ir.IntType(32)(k)) for k in (i, i + 1))
            first, second = (builder.zext(word, _WIDE) for word in pair)
            product = builder.mul(first, second)
            upper = builder.trunc(builder.lshr(product, ir.Constant(_WIDE, 64)), _WORD)
            result = builder.add(result, builder.xor(builder.trunc(product, _WORD), upper))
        result = builder.xor(result, builder.lshr(result, _word(37)))
        result = builder.mul(result, _word(_AVALANCHE))
        return builder.xor(result, builder.lshr(result, _word(32)))


def _make_long_digest() -> Any:
    @intrinsic
    def long_digest(_context: Any, buffer: Any, _at: Any, _length: Any, secret: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            held, at, length, key = arguments
            kinds = signature.args[0], signature.args[3]
            data, secret_bytes = (
                builder.bitcast(
                    context.make_array(kind)(context, builder, array).data, _BYTE.as_pointer()
                )
                for kind, array in zip(kinds, (held, key), strict=True)
            )
            digest = _Digest(builder, data, secret_bytes)
            before_last = builder.sub(length, _word(1))
            blocks = builder.udiv(before_last, _word(_BLOCK_BYTES))
            with cgutils.for_range(builder, blocks) as loop:
                start = builder.add(at, builder.mul(loop.index, _word(_BLOCK_BYTES)))
                digest.take_stripes(start, _word(_BLOCK_STRIPES))
                digest.scramble()
            done = builder.mul(blocks, _word(_BLOCK_BYTES))
            left = builder.udiv(builder.sub(before_last, done), _word(_STRIPE_BYTES))
            digest.take_stripes(builder.add(at, done), left)
            last_at = builder.add(at, builder.sub(length, _word(_STRIPE_BYTES)))
            digest.take_stripe(last_at, _word(_LAST_STRIPE_AT))
            return digest.finish(length)

        return types.uint64(buffer, types.int64, types.int64, secret), generate

    return long_digest


# long_digest(buffer, at, length, secret): XXH3 of buffer[at:][:length], more than SHORT_BYTES
_long_digest = _make_long_digest()


@kernel
def digest_between(buffer: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """The digest of buffer[start:end]."""
    if end - start > SHORT_BYTES:
        return np.uint64(_long_digest(buffer, np.int64(start), np.int64(end - start), _SECRET))
    return xxh64_between(buffer, start, end)


@kernel
def digests_between(
    buffer: NDArray[np.uint8], bounds: NDArray[np.int64], digests: NDArray[np.uint64]
) -> None:
    """Fill in the digest of each of buffer[bounds[i, 0]:bounds[i, 1]]."""
    for i in range(bounds.shape[0]):
        digests[i] = digest_between(buffer, bounds[i, 0], bounds[i, 1])


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
