"""Access to files, and what each operation promises. The one module that imports fsspec.

In-place work needs three promises: a rename replaces its target in one step, bytes that were synced
outlive a power cut, and so do names once their directory was synced. Local file systems (network
ones with POSIX semantics included) give them through the calls below, which are the operating
system's own: fsspec's local backend never syncs, and its move may copy. No other fsspec backend
states these promises, so none is taken for in-place work (spec C-15.4, F-13.3).

Errors are the operating system's (OSError, with the path in it), but for UnsupportedBackendError,
and for CorruptFileError where something stands in the place of a file.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from storage.errors import CorruptFileError, UnsupportedBackendError
from storage.files import mount_table
from storage.files.file_attributes import attributes_of, give_attributes
from storage.files.mount_table import Mount

_LOCAL_PROTOCOLS = ("file", "local")


class Entry(NamedTuple):
    """What a directory listing tells of a name."""

    name: str
    is_dir: bool
    size_bytes: int  # 0 for a directory
    mtime_ns: int  # 0 for a directory
    inode: int
    special: str = ""  # what else it is: a link, a pipe, a device


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
    """List a directory, in no order. No link is followed; what vanishes meanwhile is left out.

    Promises no snapshot: a name that comes or goes during the call may be there or not.
    """
    entries = []
    with os.scandir(path) as names:
        for item in names:
            try:
                if item.is_dir(follow_symlinks=False):
                    entries.append(Entry(item.name, True, 0, 0, item.inode()))
                    continue
                found = item.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            entries.append(_entry(item.name, found))
    return entries


def look_up(path: str) -> Entry | None:
    """Give what a listing of its directory would tell of a name; None if there is no such name."""
    name = os.path.basename(path)
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        return Entry(name, True, 0, 0, found.st_ino)
    return _entry(name, found)


def _entry(name: str, found: os.stat_result) -> Entry:
    special = _special(found.st_mode)
    return Entry(name, False, found.st_size, found.st_mtime_ns, found.st_ino, special)


def _special(mode: int) -> str:
    """What a file is that is no directory; "" for one with bytes of its own."""
    if stat.S_ISREG(mode):
        return ""
    kinds = {stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def list_names(path: str) -> tuple[list[str], list[str]]:
    """Give the names in a directory, those of directories apart: first they, then the others.

    In no order. Looks at nothing but the directory itself; a link is no directory.
    """
    directories: list[str] = []
    others: list[str] = []
    with os.scandir(path) as names:
        for item in names:
            (directories if item.is_dir(follow_symlinks=False) else others).append(item.name)
    return directories, others


def open_file(path: str) -> int:
    """Open a file of a log directory for reading; its descriptor.

    CorruptFileError where it is anything else: nothing that a link leads to is read, and nobody
    waits for the other end of a pipe.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        special = {errno.ELOOP: "a symbolic link", errno.ENXIO: "a socket"}.get(error.errno or 0)
        if special is None:
            raise
        raise CorruptFileError(path, 0, f"is {special}, not a file") from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        special = "a directory" if stat.S_ISDIR(mode) else _special(mode)
        raise CorruptFileError(path, 0, f"is {special}, not a file")
    return descriptor


def private(path: str, flags: int) -> int:
    """An opener: what it makes only this user can read, until it is given another mode."""
    return os.open(path, flags, 0o600)


def read_bytes(path: str) -> bytes:
    """Give the whole file."""
    with open(open_file(path), "rb") as source:
        return source.read()


def read_range(path: str, position: int, length: int) -> bytes:
    """Give length bytes from position; fewer only where the file ends before."""
    descriptor = open_file(path)
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
    may leave `<path>.tmp`, which Kafka overwrites too; here it is made anew, whatever it was.
    """
    temporary = f"{path}.tmp"  # beside its target, so that the rename stays on one file system
    try:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)  # it could be a link, or have another name somewhere else
        with naming(temporary), open(temporary, "xb") as out:
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


def truncate_file(path: str, size_bytes: int) -> None:
    """Cut a file off, and return once that is on disk. A crash leaves the old length or the new."""
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
    try:
        with naming(path):
            os.ftruncate(descriptor, size_bytes)
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


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


def link(source: str, target: str) -> None:
    """Give a file a second name, which must be new. On disk only after sync_directory.

    OSError where the file system has no hard links, or the names are on two.
    """
    os.link(source, target, follow_symlinks=False)


def make_directory(path: str) -> None:
    """Make a directory that this user alone may enter. It is on disk, and so is its name."""
    os.mkdir(path, 0o700)
    sync_directory(os.path.dirname(path))


def remove(path: str) -> None:
    """Remove a file. On disk only after sync_directory; FileNotFoundError if it is not there."""
    os.remove(path)


def set_mtime_ns(path: str, mtime_ns: int) -> None:
    """Set the modification time, and the access time with it."""
    os.utime(path, ns=(mtime_ns, mtime_ns))
