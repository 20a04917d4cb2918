"""Writes to files by kernels, which call the C library's `pwrite` by its address.

A kernel that did not write all leaves it to Python to write the same once more, which tells what is
wrong.
"""

from functools import cache
from typing import Any

import numpy as np

from storage.kernels.foreign_calls import address_of, call_address
from storage.kernels.kernel import inlined
from storage.kernels.positional_read import ByteArray, address_in_c


@cache
def pwrite_address() -> int:
    """Of a `pwrite` with positions of 64 bits; 0 where there is none: kernels write nothing."""
    return address_in_c("pwrite")


@inlined
def write_at(
    address: Any, descriptor: Any, position: Any, buffer: ByteArray, start: Any, length: Any
) -> Any:
    """Write buffer[start : start + length] at a position of a file; whether all of it was written.

    address: that of pwrite, or 0.
    """
    if address == 0:
        return False
    arguments = (descriptor, address_of(buffer, np.int64(start)), length, position)
    return call_address(address, arguments) == length
