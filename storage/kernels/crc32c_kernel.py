"""CRC-32C inside of kernels: by the processor's own instruction, or by tables where it has none.

An instruction waits for the one before it, which takes three times as long as it does itself. So
three ranges of bytes, one behind the other, are gone through at once, and what the first two come
to is moved over the bytes behind them: the checksum is linear. Python calls the package's
function (`storage.kernels.crc32c`) instead. Polynomial 0x1EDC6F41, reflected (F-4.2).
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from storage.kernels.crc_tables import byte_step, tables_of, word_step
from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import find_function, load_le_uint64
from storage.kernels.processor import features

_INSTRUCTIONS = {  # of the processor's features as kernels are compiled for: of a word, of a byte
    "+sse4.2": ("llvm.x86.sse42.crc32.64.64", "llvm.x86.sse42.crc32.32.8"),
    "+crc": ("llvm.aarch64.crc32cx", "llvm.aarch64.crc32cb"),
}


def _instructions() -> tuple[str, str] | None:
    known = features()
    return next((names for name, names in _INSTRUCTIONS.items() if name in known), None)


TABLES = tables_of(0x82F63B78)
STREAM_BYTES = 512  # of each of three; a multiple of eight


def _shift_tables(zeros: int) -> NDArray[np.uint32]:
    """Table k holds what byte k of a checksum comes to behind so many bytes that are zero."""
    bytes_of_it = np.arange(256, dtype=np.uint32)
    tables = np.stack([bytes_of_it << np.uint32(8 * k) for k in range(4)])
    for _ in range(zeros):
        tables = tables >> np.uint32(8) ^ TABLES[0][tables & np.uint32(0xFF)]
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
    return word_step(TABLES, crc, word)


@inlined
def byte_step_by_table(crc: Any, byte: Any) -> Any:
    """Likewise after one more byte."""
    return byte_step(TABLES, crc, byte)


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


@kernel
def crc32c_between(buffer: NDArray[np.uint8], start: int, end: int) -> int:
    """The checksum of buffer[start:end]."""
    crc = np.uint64(0xFFFFFFFF)
    at: Any = np.int64(start)
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
    while end - at >= 8:
        crc = _word_step(crc, load_le_uint64(buffer, at))
        at += 8
    while at < end:
        crc = _byte_step(crc, np.uint64(buffer[at]))
        at += 1
    return int(crc ^ np.uint64(0xFFFFFFFF))
