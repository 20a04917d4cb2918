"""Access to files, and what each operation promises. The one module that imports fsspec.

In-place work needs three promises: a rename replaces its target in one step, bytes that were synced
outlive a power cut, and so do names once their directory was synced. Local file systems (network
ones with POSIX semantics included) give them through the calls below, which are the operating
system's own: fsspec's local backend never syncs, and its move may copy. No other fsspec backend
states these promises, so none is taken for in-place work (spec C-15.4, F-13.3).

Errors are the operating system's (OSError, with the path in it), but for UnsupportedBackendError.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from storage import mount_table
from storage.errors import UnsupportedBackendError
from storage.file_attributes import attributes_of, give_attributes
from storage.mount_table import Mount

_LOCAL_PROTOCOLS = ("file", "local")


class Entry(NamedTuple):
    """What a directory listing tells of a name."""

    name: str
    is_dir: bool
    size_bytes: int  # 0 for a directory
    mtime_ns: int  # 0 for a directory
    inode: int


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Name the file in an OSError that does not: reads and writes know of descriptors only."""
    try:
        yield
    except OSError as error:
        if not isinstance(error.filename, str):
            error.filename = path
        raise


def require_in_place(url: str) -> str:
    """Give the absolute local path of a plain path or a file:// URL.

    Raise UnsupportedBackendError for everything else, also for a protocol nobody knows.
    """
    if "://" not in url and "::" not in url:
        return os.path.abspath(url)
    import fsspec  # only here: a plain path should not wait 0.1 s for it

    protocol = url.partition("::")[0] if "::" in url else url.partition("://")[0]
    if protocol in _LOCAL_PROTOCOLS:
        return os.path.abspath(str(fsspec.get_filesystem_class("file")._strip_protocol(url)))
    known = "backend" if protocol in fsspec.available_protocols() else "unknown backend"
    raise UnsupportedBackendError(
        f"{url}: {known} {protocol!r} has no stated promise of an atomic rename; "
        "logs are compacted in place on local and network file systems only"
    )


def mount_of(path: str) -> Mount | None:
    """The mount that a directory is on; None where the system has no table of mounts."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fdinfo = read_bytes(f"/proc/self/fdinfo/{descriptor}").decode()
        mountinfo = read_bytes("/proc/self/mountinfo").decode(errors="surrogateescape")
    except OSError:  # not a Linux, or one that shows no /proc
        return None
    finally:
        os.close(descriptor)
    mount_id = mount_table.mount_id_of(fdinfo)
    return None if mount_id is None else mount_table.find_mount(mountinfo, mount_id)


def list_directory(path: str) -> list[Entry]:
    """List a directory, in no order. Links are followed; what vanishes meanwhile is left out.

    Promises no snapshot: a name that comes or goes during the call may be there or not.
    """
    entries = []
    with os.scandir(path) as names:
        for item in names:
            try:
                if item.is_dir():
                    entries.append(Entry(item.name, True, 0, 0, item.inode()))
                    continue
                stat = item.stat()
            except FileNotFoundError:
                continue
            entries.append(
                Entry(item.name, False, stat.st_size, stat.st_mtime_ns, stat.st_ino),
            )
    return entries


def list_names(path: str) -> tuple[list[str], list[str]]:
    """Give the names in a directory, those of directories apart: first they, then the others.

    In no order. Looks at nothing but the directory itself, unless a name is that of a link.
    """
    directories: list[str] = []
    others: list[str] = []
    with os.scandir(path) as names:
        for item in names:
            (directories if item.is_dir() else others).append(item.name)
    return directories, others


def read_bytes(path: str) -> bytes:
    """Give the whole file."""
    with open(path, "rb") as source:
        return source.read()


def read_range(path: str, position: int, length: int) -> bytes:
    """Give length bytes from position; fewer only where the file ends before."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        data = os.pread(descriptor, length, position)
        while 0 < len(data) < length:  # Linux gives at most 2 GiB a call
            more = os.pread(descriptor, length - len(data), position + len(data))
            if not more:
                break
            data += more
        return data
    finally:
        os.close(descriptor)


def replace_file(path: str, data: bytes) -> None:
    """Make path hold exactly data. After a crash it holds the old bytes or the new, never a mix.

    The new file has the owner, mode and extended attributes of the old one, or else PermissionError
    is raised; where there was none, the owner of its directory, if it can be given away. A crash
    may leave `<path>.tmp`, which Kafka overwrites too.
    """
    temporary = f"{path}.tmp"  # beside its target, so that the rename stays on one file system
    try:
        with naming(temporary), open(temporary, "wb") as out:
            out.write(data)
            out.flush()
            _adopt(out.fileno(), path)
            os.fsync(out.fileno())  # the bytes, before the name points at them
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)
        raise
    sync_directory(os.path.dirname(path))  # the name


def _adopt(descriptor: int, path: str) -> None:
    try:
        model = attributes_of(path)
    except FileNotFoundError:
        _adopt_owner_of_directory(descriptor, os.path.dirname(path) or ".")
    else:
        give_attributes(descriptor, model)


def _adopt_owner_of_directory(descriptor: int, path: str) -> None:
    model, mine = os.stat(path), os.fstat(descriptor)
    if (mine.st_uid, mine.st_gid) != (model.st_uid, model.st_gid):
        with contextlib.suppress(PermissionError):  # only root may give files away
            os.fchown(descriptor, model.st_uid, model.st_gid)


def sync_file(path: str) -> None:
    """Return once the bytes of the file are on disk. Says nothing of its name."""
    _sync(path, os.O_RDONLY)


def sync_directory(path: str) -> None:
    """Return once the names in the directory are on disk, with every rename and removal so far."""
    _sync(path or ".", os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: str, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        with naming(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename(source: str, target: str) -> None:
    """Rename in one step, over target if it exists. On disk only after sync_directory.

    Both must be on one file system: across two the call fails and changes nothing.
    """
    os.replace(source, target)


def remove(path: str) -> None:
    """Remove a file. On disk only after sync_directory; FileNotFoundError if it is not there."""
    os.remove(path)


def set_mtime_ns(path: str, mtime_ns: int) -> None:
    """Set the modification time, and the access time with it."""
    os.utime(path, ns=(mtime_ns, mtime_ns))
