"""Hints to the disk: start writing early, give freed space back early, close removed files later.

None of them changes what a reader sees, and none promises anything: that is for a sync.

- `start_writeback`: a later sync has less to wait for.
- `punch_hole`: the kernel hands the pages of a range to whatever is written next. A fresh page
  costs several times as much as the bytes in it, on a virtual machine ten times, since its memory
  may have to come from the host. And bytes that were not written to the disk yet need not be.
- `close_in_background`: a file system frees the blocks of a file when it has no name any more and
  nobody has it open. Of a gigabyte that takes a tenth of a second and more, most of it waiting for
  the disk. So the caller holds the file open while it removes the name, which then takes no time,
  and a thread closes it. If the process ends before, the system closes it. A network file system,
  or one that a program makes, renames an open file instead of removing it: there files are removed
  in the usual way (`can_remove_while_open`).
"""

import ctypes
import errno
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from ctypes import c_int, c_int64, c_uint
from typing import TypeVar

from storage.files.files import LOCAL_TYPES, Disk


def _linux_function(name: str, arguments: Sequence[type]) -> "ctypes._NamedFuncPointer | None":
    """Find a function of the C library that Python has no name for.

    None where the system is no Linux, or its library has no such function.
    """
    if os.uname().sysname != "Linux":
        return None
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function.argtypes = list(arguments)
    return function


_WRITE = 2  # linux/fs.h, SYNC_FILE_RANGE_WRITE
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # linux/falloc.h

_sync_file_range = _linux_function("sync_file_range", (c_int, c_int64, c_int64, c_uint))
_fallocate = _linux_function("fallocate64", (c_int, c_int, c_int64, c_int64))


def start_writeback(descriptor: int, start: int, length: int) -> None:
    """Have the system start to write a range of an open file; the bytes stay in memory, too.

    Nothing is raised.
    """
    if _sync_file_range is not None and length > 0:  # a length of 0 would mean: to the end
        _sync_file_range(descriptor, start, length, _WRITE)


def punch_hole(descriptor: int, start: int, length: int) -> None:
    """Make zeros of a range of a file that is open for writing, where that gives space back.

    Nothing is raised. On a file system that cannot do it (or a system other than Linux) the bytes
    stay.
    """
    if _fallocate is not None and length > 0:
        _fallocate(descriptor, _KEEP_SIZE | _PUNCH_HOLE, start, length)


THREADS = 2  # with more, a writer that frees a block elsewhere waits for all of their blocks
MOST_OPEN = 256  # files that wait to be closed; with more, the caller waits

Close = Callable[[], object]  # closes one file
T = TypeVar("T")


def _new_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "closes removed files")  # starts a thread when it has to


_threads, _lock = _new_threads(), threading.Lock()
_begun: deque[Future[None]] = deque()
_deferred: deque[Close] = deque()
_to_close: deque[Close] = deque()
_deferring = 0  # how many blocks of `background_closes_deferred` run


def can_remove_while_open(disk: Disk, directory: str) -> bool:
    """Whether a file in a directory may be removed while it is open, and is gone then."""
    try:
        mount = disk.mount_of(directory)
    except OSError:
        return False
    return mount is not None and mount.type in LOCAL_TYPES


def close_in_background(closes: Sequence[Close]) -> None:
    """Have files closed whose names are gone; return before they are, unless there are many."""
    with _lock:
        _deferred.extend(closes)
        too_many = len(_deferred) + len(_to_close) > MOST_OPEN
        if not _deferring or too_many:
            _begin()
    if too_many:
        wait_until_freed()


@contextmanager
def background_closes_deferred() -> Iterator[None]:
    """Close nothing in the background meanwhile, unless somebody waits for it.

    A writer to a disk that is freeing blocks waits for it, too.
    """
    global _deferring
    with _lock:
        _deferring += 1
    try:
        yield
    finally:
        with _lock:
            _deferring -= 1
            if not _deferring:
                _begin()


def wait_until_freed() -> None:
    """Wait until all files passed to `close_in_background` are closed and their space is free."""
    with _lock:
        _begin()
        begun = list(_begun)
    wait(begun)
    for future in begun:
        future.result()


def retry_with_freed_space(write: Callable[[], T]) -> T:
    """Call `write`; if the disk is full, wait for the space of removed files and call it again."""
    try:
        return write()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        wait_until_freed()
        return write()


def _begin() -> None:
    while _begun and _begun[0].done():
        _begun.popleft().result()
    while _deferred:
        _to_close.append(_deferred.popleft())
    try:
        for _ in range(min(THREADS, len(_to_close))):
            _begun.append(_threads.submit(_close_all))
    except RuntimeError:  # no thread can be started, or the process is about to end
        _close_all()


def _close_all() -> None:
    """Close what is left, taking each file away from other threads first.

    A descriptor that is closed twice may be another file's by then. `submit` may keep a job though
    it has raised.
    """
    while True:
        try:
            close = _to_close.popleft()
        except IndexError:
            return
        # the name is gone and nobody reads this file again: what the disk failed to write of it
        # is lost to nobody, and the system closes it all the same
        with suppress(OSError):
            close()


def _begin_in_forked_child() -> None:
    """Have threads of its own in a forked child, which has none of those of its parent."""
    global _threads, _lock
    _threads, _lock = _new_threads(), threading.Lock()
    _begun.clear()
    _to_close.extend(_deferred)
    _deferred.clear()
    _close_all()  # its own descriptors of the files that its parent is closing


os.register_at_fork(after_in_child=_begin_in_forked_child)
