"""A file that has other names, such as one in a backup by hard links, gets bytes of its own before
it is written or cut in place: else the backup would change with it.

1. The bytes are copied to `<path>.tmp`, with owner, mode, time and extended attributes, and synced.
2. It takes the name, which is synced. The other names keep the old file.

A crash leaves the file as it was, and perhaps the `.tmp`, which is made anew the next time.
"""

import contextlib
import errno
import os

from storage.files import filesystem
from storage.files.cloning import clone_file
from storage.files.files import Entry
from storage.files.filesystem import naming


def make_own(descriptor: int, path: str) -> None:
    """Let an open file be the only one that has its bytes; the descriptor stays the same number.

    Raise OSError where that cannot be, as for want of room; then nothing has changed.
    """
    with naming(path):
        found = os.fstat(descriptor)
    if found.st_nlink < 2:
        return
    temporary = f"{path}.tmp"
    with contextlib.suppress(FileNotFoundError):
        filesystem.remove(temporary)
    try:
        if not _is_at(found, filesystem.look_up(path)):
            raise _nameless(path)
        cloned = clone_file(path, temporary, lambda _: None)
        if not _is_at(found, cloned.source):  # since the look
            raise _nameless(path)
        if not cloned.has_owner:
            problem = "has other names (hard links), and a copy cannot be given to its owner"
            raise PermissionError(errno.EPERM, problem, path)
        copy = filesystem.open_to_change(temporary, create=False)
        try:
            with naming(temporary):
                os.fsync(copy)
            filesystem.rename(temporary, path)
            with naming(path):
                os.dup2(copy, descriptor, inheritable=False)
        finally:
            os.close(copy)
    except OSError:
        with contextlib.suppress(OSError):  # the first error counts
            filesystem.remove(temporary)
        raise
    filesystem.sync_directory(os.path.dirname(path))


def _is_at(found: os.stat_result, named: Entry | None) -> bool:
    return named is not None and (named.device, named.inode) == (found.st_dev, found.st_ino)


def _nameless(path: str) -> OSError:
    return OSError(errno.EMLINK, "has other names (hard links), and has lost this one", path)
