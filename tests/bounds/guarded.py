"""Kernels between fences: every array that one is called with stands alone in memory.

Before and behind each array lie four GiB that nobody may read or write. A kernel that goes one byte
beyond what it was given ends the process, whatever stood there otherwise, and so does one that goes
a gigabyte beyond. Half of the calls have the fence right behind their arrays, half right before.
"""

import ctypes
import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import numpy as np
from numba import typeof
from numba.core.dispatcher import Dispatcher
from numba.extending import typeof_impl
from numpy.typing import NDArray

FENCE_BYTES = 4 << 30
ROOM_BYTES = 1 << 20
PACKAGES = "storage.", "cleaner_jobs.", "compactor."
_NO_ACCESS, _READ_WRITE = 0, 3
_PRIVATE_ANONYMOUS_UNRESERVED = 0x02 | 0x20 | 0x4000

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_FAILED = ctypes.c_void_p(-1).value


class _Place:
    """Memory for one array, between two fences."""

    def __init__(self, room: int) -> None:
        self.room = -(-room // mmap.PAGESIZE) * mmap.PAGESIZE
        size = self.room + 2 * FENCE_BYTES
        at = _libc.mmap(None, size, _NO_ACCESS, _PRIVATE_ANONYMOUS_UNRESERVED, -1, 0)
        if at == _FAILED or _libc.mprotect(at + FENCE_BYTES, self.room, _READ_WRITE):
            raise OSError(ctypes.get_errno(), "no room for a fence")
        self._bytes = (ctypes.c_char * self.room).from_address(at + FENCE_BYTES)

    def put(self, array: NDArray[Any], fence_behind: bool) -> NDArray[Any]:
        """A copy of the array, at one end of the place."""
        offset = self.room - array.nbytes if fence_behind else 0
        memory = memoryview(self._bytes).cast("B")
        copy: NDArray[Any] = np.ndarray(array.shape, array.dtype, memory, offset)
        copy[...] = array
        copy.flags.writeable = array.flags.writeable
        return copy


class Fences:
    """Places for the arrays of one call, used again by the next."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._places: list[_Place] = []
        self._used = 0
        self._moved: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._fence_behind = True

    def call(self, kernel: Any, arguments: tuple[Any, ...]) -> Any:
        self._used, self._moved = 0, []
        self._fence_behind = self._chance.random() < 0.5
        result = kernel(*[self._fenced(argument) for argument in arguments])
        for array, copy in self._moved:
            if array.flags.writeable:
                array[...] = copy
        return result

    def _fenced(self, argument: Any) -> Any:
        if isinstance(argument, np.ndarray):
            assert argument.flags.c_contiguous, "else the kernel is compiled once more"
            copy = self._place(argument.nbytes).put(argument, self._fence_behind)
            self._moved.append((argument, copy))
            return copy
        if isinstance(argument, tuple):
            values = [self._fenced(value) for value in argument]
            return type(argument)(*values) if hasattr(argument, "_fields") else tuple(values)
        return argument

    def _place(self, size: int) -> _Place:
        number, self._used = self._used, self._used + 1
        if number == len(self._places):
            self._places.append(_Place(max(size, ROOM_BYTES)))
        elif self._places[number].room < size:
            self._places[number] = _Place(2 * size)
        return self._places[number]


@contextmanager
def all_kernels(fences: Fences) -> Iterator[frozenset[str]]:
    """Meanwhile each kernel that a loaded module of ours calls is called between fences; its names.

    What kernels call themselves is compiled into them.
    """
    put: list[tuple[Any, str, Any]] = []
    for module in [m for name, m in sys.modules.items() if name.startswith(PACKAGES)]:
        for name, kernel in list(vars(module).items()):
            if isinstance(kernel, Dispatcher) and not is_inlined(kernel):
                put.append((module, name, kernel))
    for module, name, kernel in put:
        setattr(module, name, _Between(fences, kernel))
    try:
        yield frozenset(name for _, name, _ in put)
    finally:
        for module, name, kernel in put:
            setattr(module, name, kernel)


def is_inlined(kernel: Dispatcher) -> bool:
    """Whether it is never called by itself, but part of the kernels that name it."""
    options = kernel.targetoptions
    return options.get("forceinline", False) or options.get("inline") == "always"


class _Between:
    """In the place of a kernel, for whoever calls it from Python."""

    def __init__(self, fences: Fences, kernel: Any) -> None:
        self._fences, self.kernel = fences, kernel

    def __call__(self, *arguments: Any) -> Any:
        return self._fences.call(self.kernel, arguments)


@typeof_impl.register(_Between)
def _typeof(put: _Between, _context: Any) -> Any:
    """A kernel that is compiled meanwhile calls the kernel itself."""
    return typeof(put.kernel)  # type: ignore[no-untyped-call]
