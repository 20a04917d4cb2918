"""Keep a file under a second name: a hard link where that can be, else a copy, synced."""

import contextlib
import errno
import os
from typing import NamedTuple

import xxhash

from cleaner_jobs.work_file import write_whole
from storage.errors import CorruptFileError
from storage.files import io_limit
from storage.files.descriptors import naming
from storage.files.file_attributes import attributes_of, give_attributes
from storage.files.files import Files
from storage.files.held_directories import open_file, private

READ_BYTES = 8 << 20  # at once
HASHED_BYTES, SMALL_BYTES = 256 << 10, 16 << 10  # likewise: in the cache of a core; at least
WHOLE = 1 << 63
# another file system; one without links; another user's file, where links to it are forbidden
CANNOT_LINK = (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class FileMark(NamedTuple):
    """How a file is known again."""

    name: str
    size_bytes: int
    checksum: str  # XXH3, 64 bits


def mark_of(files: Files, path: str, name: str | None = None, up_to: int = WHOLE) -> FileMark:
    """How a file is known again, under its name or one that it is going to have.

    up_to: bytes of it that count; it may have fewer.
    """
    digest, size_bytes = xxhash.xxh3_64(), 0
    with files.open(path) as file:
        # room for a whole HASHED_BYTES takes longer to get than a small file takes to read
        at_once = min(HASHED_BYTES, max(file.entry.size_bytes, SMALL_BYTES))
        while data := file.read(size_bytes, min(at_once, up_to - size_bytes)):
            io_limit.take(len(data))
            digest.update(data)
            size_bytes += len(data)
    return FileMark(name or os.path.basename(path), size_bytes, digest.hexdigest())


def keep(files: Files, source: str, target: str, known: FileMark | None = None) -> FileMark:
    """Give a file a second name, or copy it with attributes and time; its mark.

    known: the mark, where the file has been read already. Data that is copied is on disk; the name
    is once its directory is synced.
    """
    try:
        files.link(source, target)
    except OSError as error:
        if error.errno not in CANNOT_LINK:
            raise
        return _copy(files, source, target)
    return known or mark_of(files, target)


def bring_back(files: Files, mark: FileMark, source: str, target: str) -> None:
    """Give a file that was kept its name back, or copy it; its data is on disk in any case.

    Raise CorruptFileError where it is not what was kept.
    """
    found = keep(files, source, target)
    if (found.size_bytes, found.checksum) != (mark.size_bytes, mark.checksum):
        files.remove(target)
        raise CorruptFileError(source, 0, "not the file that was kept")
    files.sync_file(target)  # a broker that was killed may not have


def _copy(files: Files, source: str, target: str) -> FileMark:
    digest, size_bytes = xxhash.xxh3_64(), 0
    model = attributes_of(source)
    try:
        with (
            naming(target),
            open(open_file(source), "rb", 0) as old,
            open(target, "xb", 0, opener=private) as new,
        ):
            while data := old.read(READ_BYTES):
                io_limit.take(len(data))
                digest.update(data)
                size_bytes += len(data)
                write_whole(new, memoryview(data))
            give_attributes(new.fileno(), model)
            os.utime(new.fileno(), ns=(model.mtime_ns, model.mtime_ns))
            os.fsync(new.fileno())
    except OSError:
        with contextlib.suppress(OSError):  # the first error counts
            files.remove(target)
        raise
    return FileMark(os.path.basename(target), size_bytes, digest.hexdigest())
