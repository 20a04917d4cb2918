"""CRC-32C inside of kernels: by the processor's own instruction, or by tables where it has none.

Kernels that give many small batches their checksum use it. For one long stretch of bytes the
package's function (`storage.kernels.crc32c`) is faster. Polynomial 0x1EDC6F41, reflected (F-4.2).
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numpy.typing import NDArray

from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import find_function, load_le_uint64

_REFLECTED_POLYNOMIAL = 0x82F63B78
_INSTRUCTIONS = {  # of the processor's features as kernels are compiled for: of a word, of a byte
    "+sse4.2": ("llvm.x86.sse42.crc32.64.64", "llvm.x86.sse42.crc32.32.8"),
    "+crc": ("llvm.aarch64.crc32cx", "llvm.aarch64.crc32cb"),
}


def _instructions() -> tuple[str, str] | None:
    *_, features = cpu_target.target_context.codegen().magic_tuple()
    known = str(features).split(",")
    return next((names for name, names in _INSTRUCTIONS.items() if name in known), None)


def _tables() -> NDArray[np.uint32]:
    """Table k holds what a byte, followed by k zeros, makes of the checksum."""
    tables = np.zeros((8, 256), np.uint32)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_REFLECTED_POLYNOMIAL if crc & 1 else 0)
        tables[0, byte] = crc
    for k in range(1, 8):
        tables[k] = tables[k - 1] >> np.uint32(8) ^ tables[0][tables[k - 1] & np.uint32(0xFF)]
    return tables


TABLES = _tables()


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
    x = crc ^ word
    byte = np.uint64(0xFF)
    return np.uint64(
        TABLES[7, x & byte]
        ^ TABLES[6, (x >> np.uint64(8)) & byte]
        ^ TABLES[5, (x >> np.uint64(16)) & byte]
        ^ TABLES[4, (x >> np.uint64(24)) & byte]
        ^ TABLES[3, (x >> np.uint64(32)) & byte]
        ^ TABLES[2, (x >> np.uint64(40)) & byte]
        ^ TABLES[1, (x >> np.uint64(48)) & byte]
        ^ TABLES[0, x >> np.uint64(56)]
    )


@inlined
def byte_step_by_table(crc: Any, byte: Any) -> Any:
    """Likewise after one more byte."""
    return (crc >> np.uint64(8)) ^ np.uint64(TABLES[0, (crc ^ byte) & np.uint64(0xFF)])


_names = _instructions()
_word_step = _make_step(_names[0], 64) if _names else word_step_by_table
_byte_step = _make_step(_names[1], 8) if _names else byte_step_by_table


@kernel
def crc32c_between(buffer: NDArray[np.uint8], start: int, end: int) -> int:
    """The checksum of buffer[start:end]."""
    crc = np.uint64(0xFFFFFFFF)
    at: Any = np.int64(start)
    while end - at >= 8:
        crc = _word_step(crc, load_le_uint64(buffer, at))
        at += 8
    while at < end:
        crc = _byte_step(crc, np.uint64(buffer[at]))
        at += 1
    return int(crc ^ np.uint64(0xFFFFFFFF))
