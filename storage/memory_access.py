"""Unaligned loads and stores of integers in byte buffers, for numba kernels.

A kernel that puts a big-endian integer together from eight array reads pays for eight of them; here
it is one load of the machine and a byte swap. Nothing is checked: a kernel calls these only where it
knows that the bytes exist.
"""

import sys
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_SWAP_FOR = {"big": sys.byteorder == "little", "little": sys.byteorder == "big"}


def _pointer(
    context: Any, builder: Any, array_type: Any, array: Any, position: Any, bits: int
) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [position]), ir.IntType(bits).as_pointer())


def _make_load(result: Any, bits: int, order: str) -> Any:
    @intrinsic
    def load(typing_context: Any, buffer: Any, position: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address = _pointer(context, builder, signature.args[0], *arguments, bits)
            value = builder.load(address, align=1)
            if _SWAP_FOR[order]:
                value = builder.bswap(value)
            if result.bitwidth > bits:
                value = builder.sext(value, ir.IntType(result.bitwidth))
            return value

        return result(buffer, types.int64), generate

    return load


def _make_store(bits: int) -> Any:
    @intrinsic
    def store(typing_context: Any, buffer: Any, position: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, at, number = arguments
            address = _pointer(context, builder, signature.args[0], array, at, bits)
            if bits < 64:
                number = builder.trunc(number, ir.IntType(bits))
            if _SWAP_FOR["big"]:
                number = builder.bswap(number)
            builder.store(number, address, align=1)
            return context.get_dummy_value()

        return types.void(buffer, types.int64, types.int64), generate

    return store


load_be_int16 = _make_load(types.int64, 16, "big")
load_be_int32 = _make_load(types.int64, 32, "big")
load_be_int64 = _make_load(types.int64, 64, "big")
load_le_uint64 = _make_load(types.uint64, 64, "little")
store_be_int16 = _make_store(16)
store_be_int32 = _make_store(32)
store_be_int64 = _make_store(64)


@intrinsic
def copy_bytes(
    typing_context: Any, target: Any, target_position: Any, source: Any, position: Any, length: Any
) -> Any:
    """Copy source[position : position + length] to target at target_position; no overlap allowed."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, to_position, origin, origin_position, count = arguments
        cgutils.raw_memcpy(
            builder,
            _pointer(context, builder, signature.args[0], to, to_position, 8),
            _pointer(context, builder, signature.args[2], origin, origin_position, 8),
            count,
            1,
        )
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate
