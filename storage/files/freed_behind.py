"""What loses its name at once, and gives its room back a moment later.

A file system frees the blocks of a file when it has no name any more and nobody has it open. Of a
gigabyte that takes a tenth of a second and more, most of it waiting for the disk. So who removes
such a file holds it open meanwhile, which makes the removal take no time, and has it closed here,
by a thread. Where the process ends before, be it killed, the system closes it.

A network file system, or one that a program makes, gives such a file another name instead, in the
same directory: there files are removed in the usual way.
"""

import errno
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import TypeVar

from storage.files import backends
from storage.files.mount_table import LOCAL_TYPES

THREADS = 2  # more of them would have whoever frees a block elsewhere wait for all of theirs
MOST_OPEN = 256  # of those that are to be closed; whoever has more waits

Close = Callable[[], object]  # closes one file
T = TypeVar("T")

_threads = ThreadPoolExecutor(THREADS, "closes removed files")  # begins a thread when it has to
_lock = threading.Lock()
_begun: deque[Future[None]] = deque()
_held_back: deque[Close] = deque()
_to_close: deque[Close] = deque()
_holding_back = 0  # how many ask for it


def frees_behind(directory: str) -> bool:
    """Whether a file in a directory may be removed while it is open, and is gone then."""
    try:
        mount = backends.mount_of(directory)
    except OSError:
        return False
    return mount is not None and mount.type in LOCAL_TYPES


def close_behind(closes: Sequence[Close]) -> None:
    """Have files closed whose names are gone. Come back before they are, unless there are many."""
    with _lock:
        _held_back.extend(closes)
        too_many = len(_held_back) + len(_to_close) > MOST_OPEN
        if not _holding_back or too_many:
            _begin()
    if too_many:
        wait_until_freed()


@contextmanager
def closing_held_back() -> Iterator[None]:
    """Close nothing behind meanwhile, unless somebody waits for it: who writes to a disk that is
    freeing blocks waits for it, too.
    """
    global _holding_back
    with _lock:
        _holding_back += 1
    try:
        yield
    finally:
        with _lock:
            _holding_back -= 1
            if not _holding_back:
                _begin()


def wait_until_freed() -> None:
    """Come back when all that was given to `close_behind` has given its room back."""
    with _lock:
        _begin()
        begun = list(_begun)
    wait(begun)
    for future in begun:
        future.result()


def with_freed_room(write: Callable[[], T]) -> T:
    """Do what writes; if there is no room, once more when that of removed files is back."""
    try:
        return write()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        wait_until_freed()
        return write()


def _begin() -> None:
    while _begun and _begun[0].done():
        _begun.popleft()
    while _held_back:
        _to_close.append(_held_back.popleft())
    try:
        for _ in range(min(THREADS, len(_to_close))):
            _begun.append(_threads.submit(_close_all))
    except RuntimeError:  # no thread can be begun, or the process is about to end
        _close_all()


def _close_all() -> None:
    """Whoever does it takes each file away from the others: a number that is closed twice may be
    another file's by then. `submit` may keep a job though it has raised.
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
