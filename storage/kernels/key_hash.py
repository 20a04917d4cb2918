"""Keyed 128-bit hash of record keys: SipHash-2-4 with 128 bits of output; of one key, or of eight.

Two records are taken to have the same key when their hashes are equal, so nobody who can produce
to a topic may be able to make two keys collide. SipHash is a keyed pseudo-random function, and its
secret is drawn from the system's generator for each run: nobody can prepare such keys, and by
chance two among a billion keys collide in fewer than one of 10**20 runs. A secret seed does not
make a fast mixer safe: for XXH64 there are pairs of 64-byte keys that collide under every second
seed. Source: Aumasson and Bernstein, SipHash: a fast short-input PRF, 2012.

A hash is one chain of instructions of which each waits for the one before it. Eight chains side by
side, in LLVM's vectors, take hardly longer than one: a third of the time per key. A processor with
narrower vectors takes them in parts, and one without any word by word. Keys that are hashed
together have the same number of words: they wait in a queue for each number.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
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

    Up to seven bytes after the key are read and masked away: the caller's buffer has that slack.
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


LANES = 8  # keys at once
MAX_WORDS = 8  # keys of more are hashed one by one
MAX_LENGTH = 8 * MAX_WORDS - 1
_QUEUE_WORDS = LANES * MAX_WORDS
_WAITING_AT = (MAX_WORDS + 1) * _QUEUE_WORDS  # there is no key without a word
_WHOSE_AT = _WAITING_AT + MAX_WORDS + 1
_HASHES_AT = _WHOSE_AT + (MAX_WORDS + 1) * LANES
_QUEUES_WORDS = _HASHES_AT + 2 * LANES

_allocate: Any = cgutils.alloca_once  # untyped
_WORD = ir.IntType(64)
_VECTOR = ir.VectorType(_WORD, LANES)
_VARIANT, _SECOND_HALF = 0xEE, 0xDD
_START = (
    0x736F6D6570736575,
    0x646F72616E646F6D ^ _VARIANT,
    0x6C7967656E657261,
    0x7465646279746573,
)


def _all(number: int) -> Any:
    return ir.Constant(_VECTOR, [number] * LANES)


def _spread(builder: Any, number: Any) -> Any:
    """A vector that holds the number in every lane."""
    nothing = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
    first = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, nothing, first)


def _rotated(builder: Any, x: Any, bits: int) -> Any:
    return builder.or_(builder.shl(x, _all(bits)), builder.lshr(x, _all(64 - bits)))


def _rounds(builder: Any, state: list[Any], count: int) -> list[Any]:
    v0, v1, v2, v3 = state
    for _ in range(count):
        v0, v2 = builder.add(v0, v1), builder.add(v2, v3)
        v1 = builder.xor(_rotated(builder, v1, 13), v0)
        v3 = builder.xor(_rotated(builder, v3, 16), v2)
        v0 = _rotated(builder, v0, 32)
        v2, v0 = builder.add(v2, v1), builder.add(v0, v3)
        v1 = builder.xor(_rotated(builder, v1, 17), v2)
        v3 = builder.xor(_rotated(builder, v3, 21), v0)
        v2 = _rotated(builder, v2, 32)
    return [v0, v1, v2, v3]


def _address(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), _VECTOR.as_pointer())


def _absorb(builder: Any, state: list[Any], word: Any) -> None:
    """Take one word of each key into the state, a list of pointers."""
    v0, v1, v2, v3 = map(builder.load, state)
    v0, v1, v2, v3 = _rounds(builder, [v0, v1, v2, builder.xor(v3, word)], 2)
    for pointer, value in zip(state, (builder.xor(v0, word), v1, v2, v3), strict=True):
        builder.store(value, pointer)


def _make_hash_lanes() -> Any:
    @intrinsic
    def hash_lanes(
        _context: Any, words: Any, _at: Any, _count: Any, _low: Any, _high: Any, _hashes_at: Any
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            held, at, count, low, high, found_at = arguments
            key = _spread(builder, low), _spread(builder, high)
            state = [_allocate(builder, _VECTOR) for _ in _START]
            for i, number in enumerate(_START):
                builder.store(builder.xor(key[i % 2], _all(number)), state[i])
            with cgutils.for_range(builder, count) as loop:
                place = builder.add(at, builder.mul(loop.index, ir.Constant(_WORD, LANES)))
                address = _address(context, builder, signature.args[0], held, place)
                _absorb(builder, state, builder.load(address, align=8))
            v0, v1, v2, v3 = map(builder.load, state)
            v2 = builder.xor(v2, _all(_VARIANT))
            for half in range(2):
                v0, v1, v2, v3 = _rounds(builder, [v0, v1, v2, v3], 4)
                whole = builder.xor(builder.xor(v0, v1), builder.xor(v2, v3))
                place = builder.add(found_at, ir.Constant(_WORD, half * LANES))
                address = _address(context, builder, signature.args[0], held, place)
                builder.store(whole, address, align=8)
                v1 = builder.xor(v1, _all(_SECOND_HALF))
            return context.get_dummy_value()

        number = types.uint64
        return types.void(words, types.int64, types.int64, number, number, types.int64), generate

    return hash_lanes


# hash_lanes(words, at, count, low, high, found_at): words[at + 8 * i + k] is word i of key k, the
# length on top of the last one; the halves of its hash come to words[found_at + k] and
# words[found_at + 8 + k]
_hash_lanes = _make_hash_lanes()


@inlined
def empty_queues() -> Any:
    """Make queues, for each number of words: words of eight keys, how many wait, whose they are."""
    queues = np.empty(_QUEUES_WORDS, np.uint64)
    queues[_WAITING_AT:_WHOSE_AT] = 0
    return queues


@inlined
def put_key(
    queues: NDArray[np.uint64], buffer: NDArray[np.uint8], position: Any, length: Any, at: Any
) -> Any:
    """Let a key of at most MAX_LENGTH bytes wait for its hash, which is to be number `at`.

    Returns the number of its words where eight keys of as many wait now, or 0. Up to eight bytes
    after it are read and masked away: the caller's buffer has that slack.
    """
    count: Any = np.int64(length >> 3) + 1
    lane: Any = np.int64(queues[_WAITING_AT + count])
    word_at = count * _QUEUE_WORDS + lane
    for k in range(count - 1):
        queues[word_at] = load_le_uint64(buffer, position + 8 * k)
        word_at += LANES
    mask = (np.uint64(1) << np.uint64(8 * (length & 7))) - np.uint64(1)
    rest = load_le_uint64(buffer, position + (length & ~7)) & mask
    queues[word_at] = np.uint64(length & 0xFF) << np.uint64(56) | rest
    queues[_WHOSE_AT + count * LANES + lane] = np.uint64(at)
    queues[_WAITING_AT + count] = np.uint64(lane + 1)
    return count if lane == LANES - 1 else 0


@inlined
def hash_waiting(
    queues: NDArray[np.uint64], count: Any, secret: Any, first_hash: Any, second_hash: Any
) -> None:
    """Hash the keys of so many words that wait. What stands in the other lanes does not count."""
    low, high = secret
    _hash_lanes(queues, count * _QUEUE_WORDS, count, low, high, _HASHES_AT)
    for lane in range(np.int64(queues[_WAITING_AT + count])):
        at = np.int64(queues[_WHOSE_AT + count * LANES + lane])
        first_hash[at] = queues[_HASHES_AT + lane]
        second_hash[at] = queues[_HASHES_AT + LANES + lane]
    queues[_WAITING_AT + count] = 0
