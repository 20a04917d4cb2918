"""Calls of C functions from kernels, by address: any function, and `pread`.

The address is an argument of the kernel, so that a compiled kernel serves other processes too.
Every argument and result takes 64 bits, as pointers and sizes do on the machines that numba knows.
The caller makes sure that the function at the address takes these arguments.

With `pread` a kernel reads and works on as much as the processor's cache holds, and Python runs
once for many of those. A kernel that reads less than it asked for leaves the file to Python, which
repeats the call and raises the error.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from storage.kernels.kernel import inlined


def _make_call() -> Any:
    @intrinsic
    def call(_context: Any, _address: Any, arguments: Any) -> Any:
        count = len(arguments)

        def generate(_: Any, builder: Any, _signature: Any, args: Any) -> Any:
            address, values = args
            word = ir.IntType(64)
            kind = ir.FunctionType(word, [word] * count)
            unpacked = [builder.extract_value(values, i) for i in range(count)]
            return builder.call(builder.inttoptr(address, kind.as_pointer()), unpacked)

        return types.int64(types.int64, arguments), generate

    return call


def _make_address() -> Any:
    @intrinsic
    def address(_context: Any, buffer: Any, _at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array, at = args
            data = context.make_array(signature.args[0])(context, builder, array).data
            return builder.ptrtoint(builder.gep(data, [at]), ir.IntType(64))

        return types.int64(buffer, types.int64), generate

    return address


# call_address(address, arguments): what the function there returns, given a tuple of int64
call_address = _make_call()

# address_of(array, at): where that element of an array stands in memory
address_of = _make_address()


ByteArray = npt.NDArray[np.uint8]

_WORD_BYTES = 8  # that a position in a file has in the calls here


@cache
def pread_address() -> int:
    """Return the address of `pread` with positions of 64 bits; 0 (kernels read nothing): none."""
    if ctypes.sizeof(ctypes.c_long) != _WORD_BYTES:
        return 0
    try:
        function = ctypes.CDLL(None).pread
    except (OSError, AttributeError, TypeError):  # the last on Windows, which has no such library
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@inlined
def read_at(address: Any, descriptor: Any, position: Any, buffer: ByteArray, length: Any) -> Any:
    """Read up to `length` bytes at a position of a file to the start of buffer.

    address: of pread, or 0. Returns how many bytes were read; 0 or a negative number on failure.
    """
    if address == 0 or length <= 0:
        return np.int64(0)
    arguments = (descriptor, address_of(buffer, np.int64(0)), length, position)
    return call_address(address, arguments)
