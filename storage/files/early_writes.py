"""Bytes that the system is to bring to the disk soon, so that a sync has less to wait for."""

import ctypes
import os

_WRITE = 2  # linux/fs.h, SYNC_FILE_RANGE_WRITE


def begin_to_write(descriptor: int, start: int, length: int) -> None:
    """Have the system begin to write a range of an open file; it stays in memory, too.

    Nothing is raised, and nothing is promised: that is for a sync.
    """
    if _sync_file_range is not None and length > 0:  # a length of 0 would mean: to the end
        _sync_file_range(descriptor, start, length, _WRITE)


def _found() -> "ctypes._NamedFuncPointer | None":
    if os.uname().sysname != "Linux":
        return None
    function = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return function


_sync_file_range = _found()
