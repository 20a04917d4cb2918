"""CRC-32 inside of kernels, the checksum of messages of format v0 and v1 (F-7.1) and of gzip.

A call of Python's own function for each of many short messages would take longer than the checksum.
Long stretches are folded, 64 bytes a step, by the processor's multiplication without carries: what
stands 64 bytes ahead is a multiple of what it would be here. Short ones, and what is left, go by
tables; so does everything where the processor has no such instruction. Polynomial 0x04C11DB7,
reflected. Source: Gopal and others, Fast CRC Computation for Generic Polynomials Using PCLMULQDQ.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from storage.kernels.crc_tables import byte_step, tables_of, two_words_step, word_step
from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import find_function, load_le_uint64
from storage.kernels.processor import features

TABLES = tables_of(0xEDB88320)
FOLDED_BYTES = 64  # at once: four lanes of 16
_LANES, _LANE_BYTES = 4, 16
# what takes the two halves of a lane over 64 bytes, and over 16
_OVER_ALL, _OVER_ONE = (0x154442BD4, 0x1C6E41596), (0x1751997D0, 0x0CCAA009E)
variable: Any = cgutils.alloca_once_value  # untyped, like the next one
tuple_of: Any = types.UniTuple
_CAN_FOLD = "+pclmul" in features()


def _make_fold() -> Any:
    """fold(buffer, at, blocks, crc): (low, high), the 16 bytes that have the checksum, begun at 0,
    of the next so many blocks of FOLDED_BYTES, begun at crc. One block at least.
    """
    word, number = ir.IntType(64), ir.IntType(32)
    lane = ir.VectorType(word, 2)
    product = ir.FunctionType(lane, [lane, lane, ir.IntType(8)])

    def moved(builder: Any, value: Any, factors: tuple[int, int], added: Any) -> Any:
        multiply = find_function(builder.module, product, "llvm.x86.pclmulqdq")
        constant = ir.Constant(lane, list(factors))
        low = builder.call(multiply, [value, constant, ir.IntType(8)(0x00)])
        high = builder.call(multiply, [value, constant, ir.IntType(8)(0x11)])
        return builder.xor(builder.xor(low, high), added)

    @intrinsic
    def fold(_context: Any, buffer: Any, _at: Any, _blocks: Any, _crc: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, at, blocks, crc = arguments
            data = context.make_array(signature.args[0])(context, builder, array).data
            start = builder.gep(data, [at])

            def load(block: Any, number_of_lane: int) -> Any:
                position = builder.mul(block, word(FOLDED_BYTES))
                position = builder.add(position, word(number_of_lane * _LANE_BYTES))
                address = builder.bitcast(builder.gep(start, [position]), lane.as_pointer())
                return builder.load(address, align=1)

            held = []
            for i in range(_LANES):
                value = load(word(0), i)
                if i == 0:
                    begun = builder.insert_element(ir.Constant(lane, [0, 0]), crc, number(0))
                    value = builder.xor(value, begun)
                held.append(variable(builder, value))
            with cgutils.for_range(builder, blocks, start=word(1)) as loop:
                for i in range(_LANES):
                    value = moved(builder, builder.load(held[i]), _OVER_ALL, load(loop.index, i))
                    builder.store(value, held[i])
            folded = builder.load(held[0])
            for i in range(1, _LANES):
                folded = moved(builder, folded, _OVER_ONE, builder.load(held[i]))
            halves = [builder.extract_element(folded, number(i)) for i in range(2)]
            return context.make_tuple(builder, signature.return_type, halves)

        pair = tuple_of(types.uint64, 2)
        return pair(buffer, types.int64, types.int64, types.uint64), generate

    return fold


_fold = _make_fold()


@inlined
def _by_folding(buffer: NDArray[np.uint8], at: Any, end: Any, crc: Any) -> tuple[Any, Any]:
    """Go on over whole blocks: the position behind them, and the running checksum."""
    blocks = (end - at) // FOLDED_BYTES
    if blocks > 0:
        low, high = _fold(buffer, at, blocks, crc)
        crc = two_words_step(TABLES, np.uint64(0), low, high)
        at += blocks * FOLDED_BYTES
    return at, crc


@inlined
def _left_to_tables(_buffer: NDArray[np.uint8], at: Any, _end: Any, crc: Any) -> tuple[Any, Any]:
    return at, crc


_over_blocks = _by_folding if _CAN_FOLD else _left_to_tables


@kernel
def crc32_between(buffer: NDArray[np.uint8], start: int, end: int) -> int:
    """The checksum of buffer[start:end]."""
    crc = np.uint64(0xFFFFFFFF)
    at: Any = np.int64(start)
    at, crc = _over_blocks(buffer, at, np.int64(end), crc)
    while end - at >= 16:
        first, second = load_le_uint64(buffer, at), load_le_uint64(buffer, at + 8)
        crc = two_words_step(TABLES, crc, first, second)
        at += 16
    if end - at >= 8:
        crc = word_step(TABLES, crc, load_le_uint64(buffer, at))
        at += 8
    while at < end:
        crc = byte_step(TABLES, crc, np.uint64(buffer[at]))
        at += 1
    return int(crc ^ np.uint64(0xFFFFFFFF))
