"""Bytes of files of our own that nobody reads again: what they take is given back at once.

The kernel hands their pages to whatever is written next. A fresh page costs several times as much
as the bytes in it, on a virtual machine ten times: its memory may have to come from the host. And
what was not written to the disk yet need not be any more.
"""

from ctypes import c_int, c_int64

from storage.files.linux_function import linux_function

_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # linux/falloc.h

_fallocate = linux_function("fallocate64", (c_int, c_int, c_int64, c_int64))


def release(descriptor: int, start: int, length: int) -> None:
    """Make zeros of a range of a file that is open for writing, where that gives anything back.

    Whoever calls it does not care: nothing is raised, and on a file system that cannot do it
    (or a system other than Linux) the bytes stay.
    """
    if _fallocate is not None and length > 0:
        _fallocate(descriptor, _KEEP_SIZE | _PUNCH_HOLE, start, length)
