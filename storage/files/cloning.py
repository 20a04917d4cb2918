"""A new file with the bytes of another, its attributes and its time.

Where the file system can, both share their bytes (a reflink), or the kernel copies them. Holes stay
holes: the indexes of an active segment have 10 MiB each, nearly all of it a hole. Of the source
nothing is changed but the time of its last reading. Source: Linux, ioctl_ficlonerange(2),
copy_file_range(2), lseek(2), syncfs(2).
"""

import contextlib
import ctypes
import errno
import fcntl
import os
from collections.abc import Callable, Iterator

from storage.files import io_limit
from storage.files.descriptors import naming, read_from
from storage.files.file_attributes import attributes_of, give_attributes
from storage.files.files import Cloned
from storage.files.held_directories import (
    RelativePath,
    note_made,
    open_directory,
    open_known,
    private,
)

FICLONE = 0x40049409
CHUNK_BYTES = 32 << 20  # after each of them `advance` is called
READ_BYTES = 1 << 20
_BLOCK_BYTES = 512  # of st_blocks, whatever the file system's own


def clone_file(source: str, target: str, advance: Callable[[int], object]) -> Cloned:
    """Make target, which must be new, a copy of source. On disk only after `sync_file_system`.

    advance: is called with bytes that were copied since the last call. Errors name the file that
    they are of. What is left of target after an error is the caller's to remove.
    """
    old, found = open_known(source)
    try:
        with naming(target), open(target, "xb", 0, opener=private) as out:
            new = out.fileno()
            if _share(old, new):
                advance(found.size_bytes)
            else:
                _copy(old, new, found.size_bytes, source, advance)
            has_owner = _give_attributes(old, new, source)
            os.utime(new, ns=(found.mtime_ns, found.mtime_ns))
    finally:
        os.close(old)
    return Cloned(found, has_owner)


def clone_directory(source: str, target: str) -> bool:
    """Make a directory with the owner and mode of another, on disk, too.

    Returns whether it got the owner.
    """
    with RelativePath(target, True) as (name, directory):
        os.mkdir(name, 0o700, dir_fd=directory)
    note_made(target)
    descriptor = open_directory(target)
    if descriptor is None:
        descriptor = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        with naming(target):
            return _give_attributes(source, descriptor, source)
    finally:
        os.close(descriptor)


def sync_file_system(descriptor: int, path: str) -> None:
    """Return once everything on the file system of a directory is on disk: bytes and names.

    descriptor: of the directory, and opened before anything was written: an error of writing that
    came before is reported to nobody. For ten thousand files that is one call instead of as many.
    """
    if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)


def can_share(source: str, directory: str) -> bool:
    """Whether a copy of a file in a directory would share its bytes. Leaves nothing there."""
    probe = os.path.join(directory, ".compactor-probe")
    old, _ = open_known(source)
    try:
        with contextlib.suppress(FileNotFoundError), naming(probe):
            os.unlink(probe)  # of a run that was killed
        with naming(probe), open(probe, "xb", 0, opener=private) as out:
            try:
                return _share(old, out.fileno())
            finally:
                os.unlink(probe)
    finally:
        os.close(old)


def allocated_bytes(path: str) -> int:
    """How much of a file is no hole."""
    return os.lstat(path).st_blocks * _BLOCK_BYTES


def _share(old: int, new: int) -> bool:
    try:
        fcntl.ioctl(new, FICLONE, old)
    except OSError:  # two file systems, or one that cannot: whatever else is wrong is met again
        return False
    return True


def _copy(
    old: int, new: int, size_bytes: int, source: str, advance: Callable[[int], object]
) -> None:
    os.ftruncate(new, size_bytes)
    reported = 0
    for begin, end in _extents(old, size_bytes):
        position = begin
        while position < end:
            copied = _copy_some(old, new, position, min(CHUNK_BYTES, end - position), source)
            if not copied:  # cut off meanwhile; a comparison sees it
                return
            position += copied
            advance(position - reported)
            reported = position
    advance(size_bytes - reported)


def _copy_some(old: int, new: int, position: int, count: int, source: str) -> int:
    """How much could be copied; 0 where the source ends."""
    io_limit.take(2 * count)
    with contextlib.suppress(OSError):  # of which file, the way through memory tells
        copied = os.copy_file_range(old, new, count, offset_src=position, offset_dst=position)
        if copied:
            return copied
    with naming(source):
        data = read_from(old, position, min(count, READ_BYTES))
    written = 0
    while written < len(data):
        written += os.pwrite(new, data[written:], position + written)
    return written


def _extents(descriptor: int, size_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of each stretch of a file that is no hole."""
    end = 0
    while end < size_bytes:
        try:
            begin = os.lseek(descriptor, end, os.SEEK_DATA)
            end = os.lseek(descriptor, begin, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole is left
                return
            begin, end = end, size_bytes  # nobody knows of holes here
        yield begin, min(end, size_bytes)


def _give_attributes(model: str | int, descriptor: int, source: str) -> bool:
    """Make an open file like the model; whether it could be given to its owner."""
    with naming(source):
        attributes = attributes_of(model)
    try:
        give_attributes(descriptor, attributes)
    except PermissionError:
        found = os.fstat(descriptor)
        if (found.st_uid, found.st_gid) == (attributes.uid, attributes.gid):
            raise  # of something else than its owner
        os.fchmod(descriptor, attributes.mode)
        return False
    return True
