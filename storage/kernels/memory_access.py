"""Unaligned loads, stores and copies in byte buffers, for kernels.

A kernel that puts a big-endian integer together from eight array reads pays for eight of them;
here it is one load of the machine and a byte swap. Nothing is checked: a kernel calls these only
where it knows that the bytes exist.
"""

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from storage.kernels.kernel import inlined

copy_memory: Any = cgutils.raw_memcpy  # untyped, like the next one
find_function: Any = cgutils.get_or_insert_function
_SWAP_FOR = {"big": sys.byteorder == "little", "little": sys.byteorder == "big"}


def _pointer(
    context: Any, builder: Any, array_type: Any, array: Any, position: Any, *, bits: int
) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [position]), ir.IntType(bits).as_pointer())


def _make_load(result: Any, bits: int, order: str) -> Any:
    @intrinsic
    def load(_context: Any, buffer: Any, _position: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address = _pointer(context, builder, signature.args[0], *arguments, bits=bits)
            value = builder.load(address, align=1)
            if _SWAP_FOR[order] and bits > 8:
                value = builder.bswap(value)
            if result.bitwidth > bits:
                extended = builder.sext if result.signed else builder.zext
                value = extended(value, ir.IntType(result.bitwidth))
            return value

        return result(buffer, types.int64), generate

    return load


def _make_store(bits: int) -> Any:
    @intrinsic
    def store(_context: Any, buffer: Any, _position: Any, _value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, at, number = arguments
            address = _pointer(context, builder, signature.args[0], array, at, bits=bits)
            if bits < 64:
                number = builder.trunc(number, ir.IntType(bits))
            if _SWAP_FOR["big"]:
                number = builder.bswap(number)
            builder.store(number, address, align=1)
            return context.get_dummy_value()

        return types.void(buffer, types.int64, types.int64), generate

    return store


load_byte = _make_load(types.uint64, 8, "little")
load_be_int16 = _make_load(types.int64, 16, "big")
load_be_int32 = _make_load(types.int64, 32, "big")
load_be_int64 = _make_load(types.int64, 64, "big")
load_le_uint64 = _make_load(types.uint64, 64, "little")
store_be_int16 = _make_store(16)
store_be_int32 = _make_store(32)
store_be_int64 = _make_store(64)


def _make_block_copy(size: int) -> Any:
    @intrinsic
    def copy(_context: Any, target: Any, _at: Any, source: Any, _position: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            to, to_position, origin, origin_position = arguments
            block = ir.VectorType(ir.IntType(8), size).as_pointer()
            address = _pointer(context, builder, signature.args[2], origin, origin_position, bits=8)
            value = builder.load(builder.bitcast(address, block), align=1)
            address = _pointer(context, builder, signature.args[0], to, to_position, bits=8)
            builder.store(value, builder.bitcast(address, block), align=1)
            return context.get_dummy_value()

        return types.void(target, types.int64, source, types.int64), generate

    return copy


# copy_8(target, target_position, source, position): eight bytes, all read before any is written
copy_8 = _make_block_copy(8)
copy_16 = _make_block_copy(16)
copy_32 = _make_block_copy(32)


def _make_trailing_zeros() -> Any:
    @intrinsic
    def count(_context: Any, _value: Any) -> Any:
        def generate(_: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

        return types.uint64(types.uint64), generate

    return count


# trailing_zeros(value): how many bits below the lowest that is set; of a uint64 that is not 0
trailing_zeros = _make_trailing_zeros()


def _make_bit_length() -> Any:
    @intrinsic
    def bit_length(_context: Any, _value: Any) -> Any:
        def generate(_: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            zeros = builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))
            return builder.sub(ir.Constant(ir.IntType(64), 64), zeros)

        return types.int64(types.int64), generate

    return bit_length


# bit_length(value): how many bits an int64 takes that is not negative; 0 takes none
bit_length = _make_bit_length()


def _make_copy() -> Any:
    @intrinsic
    def copy(
        _context: Any, target: Any, _target_position: Any, source: Any, _position: Any, _length: Any
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            to, to_position, origin, origin_position, count = arguments
            target_type, source_type = signature.args[0], signature.args[2]
            copy_memory(
                builder,
                _pointer(context, builder, target_type, to, to_position, bits=8),
                _pointer(context, builder, source_type, origin, origin_position, bits=8),
                count,
                1,
            )
            return context.get_dummy_value()

        return types.void(target, types.int64, source, types.int64, types.int64), generate

    return copy


def _make_comparison() -> Any:
    kind = ir.FunctionType(
        ir.IntType(32), [ir.IntType(8).as_pointer(), ir.IntType(8).as_pointer(), ir.IntType(64)]
    )

    @intrinsic
    def same(_context: Any, first: Any, _position: Any, second: Any, _at: Any, _length: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            one, position, other, at, count = arguments
            compare = find_function(builder.module, kind, "memcmp")
            found = builder.call(
                compare,
                [
                    _pointer(context, builder, signature.args[0], one, position, bits=8),
                    _pointer(context, builder, signature.args[2], other, at, bits=8),
                    count,
                ],
            )
            return builder.icmp_signed("==", found, ir.Constant(ir.IntType(32), 0))

        return types.boolean(first, types.int64, second, types.int64, types.int64), generate

    return same


# same_bytes(first, position, second, at, length): whether first[position:][:length] and
# second[at:][:length] are equal
same_bytes = _make_comparison()


# copy_bytes(target, target_position, source, position, length): source[position:][:length], no
# overlap allowed
copy_bytes = _make_copy()


def _make_prefetch() -> Any:
    number, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
    to_write, to_stay, data_cache = number(1), number(3), number(1)

    @intrinsic
    def fetch(_context: Any, array: Any, _index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            held, index = arguments
            data = context.make_array(signature.args[0])(context, builder, held).data
            address = builder.bitcast(builder.gep(data, [index]), pointer)
            call = find_function(builder.module, kind, "llvm.prefetch.p0i8")
            builder.call(call, [address, to_write, to_stay, data_cache])
            return context.get_dummy_value()

        return types.void(array, types.int64), generate

    return fetch


# prefetch(array, index): have element `index` of a contiguous array, as it stands in memory, in the
# processor's cache soon; only a hint, of whatever index
prefetch = _make_prefetch()


ByteArray = NDArray[np.uint8]

OVERSHOOT = 32  # bytes that a copy may touch beyond its end


@inlined
def copy_some(source: ByteArray, ip: Any, out: ByteArray, op: Any, length: Any) -> None:
    """Copy `length` bytes by whole blocks, and up to OVERSHOOT more."""
    if length <= 16:
        copy_16(out, op, source, ip)
    else:
        done = np.int64(0)
        while done < length:
            copy_32(out, op + done, source, ip + done)
            done += 32


@inlined
def copy_match(out: ByteArray, op: Any, offset: Any, length: Any) -> None:
    """Repeat at op the bytes that begin `offset` before it, as decompression does.

    They repeat as often as `length` takes. Writes up to OVERSHOOT bytes more.
    """
    if offset >= OVERSHOOT:
        copy_some(out, op - offset, out, op, length)
    else:
        _repeat(out, op, offset, length)


@inlined
def _repeat(out: ByteArray, op: Any, offset: Any, length: Any) -> None:
    stop = op + length
    distance = offset
    if offset < 8:  # the bytes repeat: from farther back they are the same
        for _ in range(8):
            out[op] = out[op - offset]
            op += 1
        while distance < 8:
            distance += offset
    while op < stop:
        copy_8(out, op, out, op - distance)
        op += 8
