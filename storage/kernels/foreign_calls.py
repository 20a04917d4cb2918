"""Functions of C libraries, called by their address from kernels.

The address is an argument of the kernel, so that a compiled kernel serves other processes too.
Every argument and result takes 64 bits, as pointers and sizes do on the machines that numba knows.
The caller answers for it that the function at the address takes what it is given.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _make_call() -> Any:
    @intrinsic
    def call(_context: Any, _address: Any, arguments: Any) -> Any:
        count = len(arguments)

        def generate(_: Any, builder: Any, _signature: Any, given: Any) -> Any:
            address, values = given
            word = ir.IntType(64)
            kind = ir.FunctionType(word, [word] * count)
            unpacked = [builder.extract_value(values, i) for i in range(count)]
            return builder.call(builder.inttoptr(address, kind.as_pointer()), unpacked)

        return types.int64(types.int64, arguments), generate

    return call


def _make_address() -> Any:
    @intrinsic
    def address(_context: Any, buffer: Any, _at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            array, at = given
            data = context.make_array(signature.args[0])(context, builder, array).data
            return builder.ptrtoint(builder.gep(data, [at]), ir.IntType(64))

        return types.int64(buffer, types.int64), generate

    return address


# call_address(address, arguments): what the function there returns, given a tuple of int64
call_address = _make_call()

# address_of(array, at): where that element of an array stands in memory
address_of = _make_address()
