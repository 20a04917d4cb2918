"""The checksums CRC-32C and CRC-32 inside of kernels: `crc32c_between` and `crc32_between`.

Both polynomials are reflected; a running checksum begins and ends inverted.

CRC-32C (0x1EDC6F41; record batches, F-4.2), by the first of these ways that the processor has:

1. Folding, where registers of 256 or 512 bits can be multiplied without carries (VPCLMULQDQ).
2. An instruction for the checksum itself. Each waits for the one before it, which takes three times
   as long as it does itself. So three consecutive ranges are taken in at once, and what the first
   two come to is moved over the bytes of the next: the checksum is linear.
3. Tables, eight bytes a step.

Python calls the function of the package `crc32c` instead.

CRC-32 (0x04C11DB7; messages of format v0 and v1, F-7.1, and gzip): a call of Python's function for
each of many short messages would take longer than the checksum. Long ranges are folded in registers
of 128 bits, because short messages do not fill wider ones; tables take the rest.

Folding holds the bytes so far in four registers. A step multiplies each by the power of x that
moves it over all four, and adds the next bytes. Source: Gopal and others, Fast CRC Computation for
Generic Polynomials Using PCLMULQDQ.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from storage.kernels.kernel import features, inlined, kernel
from storage.kernels.memory_access import find_function, load_le_uint64

CRC32C, CRC32 = 0x82F63B78, 0xEDB88320  # the polynomials, reflected


def tables_of(polynomial: int) -> NDArray[np.uint32]:
    """Table k holds what a byte, followed by k zeros, makes of the checksum. Shape (16, 256)."""
    tables = np.zeros((16, 256), np.uint32)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (polynomial if crc & 1 else 0)
        tables[0, byte] = crc
    for k in range(1, 16):
        tables[k] = tables[k - 1] >> np.uint32(8) ^ tables[0][tables[k - 1] & np.uint32(0xFF)]
    return tables


@inlined
def word_step(tables: NDArray[np.uint32], crc: Any, word: Any) -> Any:
    """The running checksum after eight more bytes, the first of them the lowest."""
    return _word_before(tables, crc ^ word, 0)


@inlined
def two_words_step(tables: NDArray[np.uint32], crc: Any, first: Any, second: Any) -> Any:
    """The running checksum after sixteen more: half the work does not wait for the step before."""
    return _word_before(tables, crc ^ first, 8) ^ _word_before(tables, second, 0)


@inlined
def _word_before(tables: NDArray[np.uint32], x: Any, zeros: int) -> Any:
    """What eight bytes, followed by so many zeros, make of the checksum."""
    byte = np.uint64(0xFF)
    return np.uint64(
        tables[zeros + 7, x & byte]
        ^ tables[zeros + 6, (x >> np.uint64(8)) & byte]
        ^ tables[zeros + 5, (x >> np.uint64(16)) & byte]
        ^ tables[zeros + 4, (x >> np.uint64(24)) & byte]
        ^ tables[zeros + 3, (x >> np.uint64(32)) & byte]
        ^ tables[zeros + 2, (x >> np.uint64(40)) & byte]
        ^ tables[zeros + 1, (x >> np.uint64(48)) & byte]
        ^ tables[zeros, x >> np.uint64(56)]
    )


@inlined
def byte_step(tables: NDArray[np.uint32], crc: Any, byte: Any) -> Any:
    """The running checksum after one more byte."""
    return (crc >> np.uint64(8)) ^ np.uint64(tables[0, (crc ^ byte) & np.uint64(0xFF)])


REGISTERS = 4  # that are folded side by side
_MULTIPLICATIONS = {  # without carries, by the words of a register
    2: "llvm.x86.pclmulqdq",
    4: "llvm.x86.pclmulqdq.256",
    8: "llvm.x86.pclmulqdq.512",
}


def power_of_x(polynomial: int, exponent: int) -> int:
    """Return x**exponent modulo a reflected polynomial, reflected: the highest bit is x**0."""
    value = 1 << 31
    for _ in range(exponent):
        value = value >> 1 ^ (polynomial if value & 1 else 0)
    return value


def factors_over(polynomial: int, size: int) -> tuple[int, int]:
    """Return what moves the low and the high half of 16 bytes over `size` bytes.

    The product of two reflected factors comes out a bit too low: hence the shift.
    """
    low, high = 8 * size + 32, 8 * size - 32
    return power_of_x(polynomial, low) << 1, power_of_x(polynomial, high) << 1


variable: Any = cgutils.alloca_once_value  # untyped, like the next one
tuple_of: Any = types.UniTuple


def multiplied(builder: Any, value: Any, factor: Any, halves: int) -> Any:
    """Multiply one half of each 16 bytes without carries: of both the low (0x00) or high (0x11)."""
    kind = ir.FunctionType(value.type, [value.type, value.type, ir.IntType(8)])
    call = find_function(builder.module, kind, _MULTIPLICATIONS[value.type.count])
    return builder.call(call, [value, factor, ir.IntType(8)(halves)])


def make_fold(polynomial: int, words: int) -> Any:
    """Make fold(buffer, at, blocks, crc), which returns 16 bytes as a pair of words, low and high.

    Their checksum, begun at 0, is that of the next `blocks` blocks, begun at crc. A block fills
    REGISTERS of `words` words each. blocks: at least one.
    """
    word, number = ir.IntType(64), ir.IntType(32)
    register, size = ir.VectorType(word, words), 8 * words

    def moved(builder: Any, value: Any, over: int, added: Any) -> Any:
        factors = list(factors_over(polynomial, over)) * (value.type.count // 2)
        constant = ir.Constant(value.type, factors)
        low = multiplied(builder, value, constant, 0x00)
        high = multiplied(builder, value, constant, 0x11)
        return builder.xor(builder.xor(low, high), added)

    @intrinsic
    def fold(_context: Any, buffer: Any, _at: Any, _blocks: Any, _crc: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, at, blocks, crc = arguments
            data = context.make_array(signature.args[0])(context, builder, array).data
            start = builder.bitcast(builder.gep(data, [at]), register.as_pointer())

            def load(i: Any) -> Any:
                return builder.load(builder.gep(start, [i]), align=1)

            begun = builder.insert_element(ir.Constant(register, [0] * words), crc, number(0))
            held = [variable(builder, load(word(i))) for i in range(REGISTERS)]
            builder.store(builder.xor(builder.load(held[0]), begun), held[0])
            with cgutils.for_range(builder, blocks, start=word(1)) as loop:
                place = builder.mul(loop.index, word(REGISTERS))
                for i, one in enumerate(held):
                    added = load(builder.add(place, word(i)))
                    value = moved(builder, builder.load(one), REGISTERS * size, added)
                    builder.store(value, one)
            whole, *others = map(builder.load, held)
            for other in others:
                whole = moved(builder, whole, size, other)
            pairs = [ir.Constant(ir.VectorType(number, 2), [i, i + 1]) for i in range(0, words, 2)]
            first, *others = (builder.shuffle_vector(whole, whole, pair) for pair in pairs)
            for other in others:
                first = moved(builder, first, 16, other)
            halves = [builder.extract_element(first, number(i)) for i in range(2)]
            return context.make_tuple(builder, signature.return_type, halves)

        pair = tuple_of(types.uint64, 2)
        return pair(buffer, types.int64, types.int64, types.uint64), generate

    return fold


_INSTRUCTIONS = {  # of the processor's features as kernels are compiled for: of a word, of a byte
    "+crc32": ("llvm.x86.sse42.crc32.64.64", "llvm.x86.sse42.crc32.32.8"),
    "+crc": ("llvm.aarch64.crc32cx", "llvm.aarch64.crc32cb"),
}


def _instructions() -> tuple[str, str] | None:
    known = features()
    return next((names for name, names in _INSTRUCTIONS.items() if name in known), None)


CRC32C_TABLES = tables_of(CRC32C)
STREAM_BYTES = 512  # of each of three; a multiple of eight


def _shift_tables(zeros: int) -> NDArray[np.uint32]:
    """Table k holds what byte k of a checksum comes to after so many bytes that are zero."""
    bytes_of_it = np.arange(256, dtype=np.uint32)
    tables = np.stack([bytes_of_it << np.uint32(8 * k) for k in range(4)])
    for _ in range(zeros):
        tables = tables >> np.uint32(8) ^ CRC32C_TABLES[0][tables & np.uint32(0xFF)]
    return tables


SHIFTS = _shift_tables(STREAM_BYTES)


def _make_step(name: str, bits: int) -> Any:
    """A step of the running checksum by one word or byte, as an instruction."""
    width = int(name.rpartition(".")[2] == "64") * 32 + 32  # of what it counts in
    given = bits if "x86" in name else max(bits, 32)

    @intrinsic
    def step(_context: Any, _crc: Any, _data: Any) -> Any:
        def generate(_: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            crc, data = arguments
            kind = ir.FunctionType(ir.IntType(width), [ir.IntType(width), ir.IntType(given)])
            call = find_function(builder.module, kind, name)
            if width < 64:
                crc = builder.trunc(crc, ir.IntType(width))
            if given < 64:
                data = builder.trunc(data, ir.IntType(given))
            found = builder.call(call, [crc, data])
            return builder.zext(found, ir.IntType(64)) if width < 64 else found

        return types.uint64(types.uint64, types.uint64), generate

    return step


@inlined
def word_step_by_table(crc: Any, word: Any) -> Any:
    """The running checksum after eight more bytes, the first of them the lowest."""
    return word_step(CRC32C_TABLES, crc, word)


@inlined
def byte_step_by_table(crc: Any, byte: Any) -> Any:
    """The running checksum after one more byte."""
    return byte_step(CRC32C_TABLES, crc, byte)


_names = _instructions()
_word_step = _make_step(_names[0], 64) if _names else word_step_by_table
_byte_step = _make_step(_names[1], 8) if _names else byte_step_by_table


@inlined
def shifted(crc: Any) -> Any:
    """The running checksum after STREAM_BYTES that are zero."""
    byte = np.uint64(0xFF)
    return np.uint64(
        SHIFTS[0, crc & byte]
        ^ SHIFTS[1, (crc >> np.uint64(8)) & byte]
        ^ SHIFTS[2, (crc >> np.uint64(16)) & byte]
        ^ SHIFTS[3, crc >> np.uint64(24)]
    )


@inlined
def _crc32c_by_streams(buffer: NDArray[np.uint8], at: Any, end: Any, crc: Any) -> tuple[Any, Any]:
    """Take in three ranges at once; return the position after them and the running checksum."""
    while end - at >= 3 * STREAM_BYTES:
        second, third = np.uint64(0), np.uint64(0)
        stop: Any = at + STREAM_BYTES
        while at < stop:
            crc = _word_step(crc, load_le_uint64(buffer, at))
            second = _word_step(second, load_le_uint64(buffer, at + STREAM_BYTES))
            third = _word_step(third, load_le_uint64(buffer, at + 2 * STREAM_BYTES))
            at += 8
        crc = shifted(shifted(crc) ^ second) ^ third
        at += 2 * STREAM_BYTES
    return at, crc


def _crc32c_words() -> int:
    """Return the words of the registers that CRC-32C is folded in; 0 where it is not folded."""
    known = features()
    if "+vpclmulqdq" not in known:
        return 0  # registers of 128 bits are no faster than the streams
    if {"+avx512f", "+avx512vl"} <= known:
        return 8
    return 4 if "+avx2" in known else 0


CRC32C_WORDS = _crc32c_words()
_CRC32C_BLOCK = np.int64(REGISTERS * 8 * CRC32C_WORDS)
_fold_crc32c = make_fold(CRC32C, CRC32C_WORDS)


@inlined
def _crc32c_by_folding(buffer: NDArray[np.uint8], at: Any, end: Any, crc: Any) -> tuple[Any, Any]:
    """Take in whole blocks; return the position after them and the running checksum."""
    blocks = (end - at) // _CRC32C_BLOCK
    if blocks > 0:
        low, high = _fold_crc32c(buffer, at, blocks, crc)
        crc = _word_step(_word_step(np.uint64(0), low), high)
        at += blocks * _CRC32C_BLOCK
    return at, crc


_over_long_crc32c = _crc32c_by_folding if CRC32C_WORDS else _crc32c_by_streams


@kernel
def crc32c_between(buffer: NDArray[np.uint8], start: int, end: int) -> int:
    """Return the CRC-32C of buffer[start:end]."""
    crc = np.uint64(0xFFFFFFFF)
    at: Any = np.int64(start)
    at, crc = _over_long_crc32c(buffer, at, np.int64(end), crc)
    while end - at >= 8:
        crc = _word_step(crc, load_le_uint64(buffer, at))
        at += 8
    while at < end:
        crc = _byte_step(crc, np.uint64(buffer[at]))
        at += 1
    return int(crc ^ np.uint64(0xFFFFFFFF))


CRC32_TABLES = tables_of(CRC32)
_CRC32_WORDS = 2
_CRC32_BLOCK = np.int64(REGISTERS * 8 * _CRC32_WORDS)
_CAN_FOLD = "+pclmul" in features()
_fold_crc32 = make_fold(CRC32, _CRC32_WORDS)


@inlined
def _crc32_by_folding(buffer: NDArray[np.uint8], at: Any, end: Any, crc: Any) -> tuple[Any, Any]:
    """Take in whole blocks; return the position after them and the running checksum."""
    blocks = (end - at) // _CRC32_BLOCK
    if blocks > 0:
        low, high = _fold_crc32(buffer, at, blocks, crc)
        crc = two_words_step(CRC32_TABLES, np.uint64(0), low, high)
        at += blocks * _CRC32_BLOCK
    return at, crc


@inlined
def _left_to_tables(_buffer: NDArray[np.uint8], at: Any, _end: Any, crc: Any) -> tuple[Any, Any]:
    return at, crc


_over_long_crc32 = _crc32_by_folding if _CAN_FOLD else _left_to_tables


@kernel
def crc32_between(buffer: NDArray[np.uint8], start: int, end: int) -> int:
    """Return the CRC-32 of buffer[start:end]."""
    crc = np.uint64(0xFFFFFFFF)
    at: Any = np.int64(start)
    at, crc = _over_long_crc32(buffer, at, np.int64(end), crc)
    while end - at >= 16:
        first, second = load_le_uint64(buffer, at), load_le_uint64(buffer, at + 8)
        crc = two_words_step(CRC32_TABLES, crc, first, second)
        at += 16
    if end - at >= 8:
        crc = word_step(CRC32_TABLES, crc, load_le_uint64(buffer, at))
        at += 8
    while at < end:
        crc = byte_step(CRC32_TABLES, crc, np.uint64(buffer[at]))
        at += 1
    return int(crc ^ np.uint64(0xFFFFFFFF))
