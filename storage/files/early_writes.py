"""Bytes that the system is to bring to the disk soon, so that a sync has less to wait for."""

from ctypes import c_int, c_int64, c_uint

from storage.files.linux_function import linux_function

_WRITE = 2  # linux/fs.h, SYNC_FILE_RANGE_WRITE

_sync_file_range = linux_function("sync_file_range", (c_int, c_int64, c_int64, c_uint))


def begin_to_write(descriptor: int, start: int, length: int) -> None:
    """Have the system begin to write a range of an open file; it stays in memory, too.

    Nothing is raised, and nothing is promised: that is for a sync.
    """
    if _sync_file_range is not None and length > 0:  # a length of 0 would mean: to the end
        _sync_file_range(descriptor, start, length, _WRITE)
