"""Reads of files by kernels, which call the C library's `pread` by its address.

So a kernel reads and works on as much as the processor's cache holds, and Python runs once for
many of those. Whoever gets less than it asked for leaves the file to Python, which tells an error
apart from the end of the file.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from storage.kernels.foreign_calls import address_of, call_address
from storage.kernels.kernel import inlined

ByteArray = npt.NDArray[np.uint8]

_WORD_BYTES = 8  # that a position in a file has in the calls of foreign_calls


@cache
def pread_address() -> int:
    """Of a `pread` with positions of 64 bits; 0 where there is none: then kernels read nothing."""
    return address_in_c("pread")


def address_in_c(name: str) -> int:
    """Of a function of the C library that takes a position in a file, of 64 bits; 0 for none."""
    if ctypes.sizeof(ctypes.c_long) != _WORD_BYTES:
        return 0
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError, TypeError):  # the last on Windows, which has no such library
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@inlined
def read_at(address: Any, descriptor: Any, position: Any, buffer: ByteArray, length: Any) -> Any:
    """Read up to `length` bytes at a position of a file to the start of buffer, and say how many.

    None, or a negative number, where it fails. address: that of pread, or 0.
    """
    if address == 0 or length <= 0:
        return np.int64(0)
    arguments = (descriptor, address_of(buffer, np.int64(0)), length, position)
    return call_address(address, arguments)
