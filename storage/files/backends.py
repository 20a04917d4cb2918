"""What logs may stand on: local paths (also as URLs), and the mount that a directory is on.

The one module that imports fsspec. What a backend has to promise is said in `local`.

Linux shows the table of mounts in /proc/self/mountinfo, a line each, with these fields by spaces:

    36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=continue

identifier, parent's, device, root within the file system, mount point, options, any number of
optional fields, a hyphen, type, source, options of the file system. Blanks and backslashes in a
path are octal escapes. Source: proc(5).
"""

import os
import re

from storage.errors import UnsupportedBackendError
from storage.files.files import Disk, Mount

_LOCAL_PROTOCOLS = ("file", "local")


def require_in_place(url: str, disk: Disk) -> str:
    """Return the absolute local path of a plain path or a file:// URL.

    Raise UnsupportedBackendError for everything else, also for a protocol nobody knows.
    """
    if "://" not in url and "::" not in url:
        return _absolute(url, disk)
    import fsspec  # only here: a plain path should not wait 0.1 s for it

    protocol = url.partition("::")[0] if "::" in url else url.partition("://")[0]
    if protocol in _LOCAL_PROTOCOLS:
        return _absolute(str(fsspec.get_filesystem_class("file")._strip_protocol(url)), disk)
    known = "" if protocol in fsspec.available_protocols() else ", which is not known here"
    raise UnsupportedBackendError(
        f"{url}: begins with {protocol}:{known}. Logs are compacted in directories of this "
        "machine, or mounted on it: copy them to a disk first, or give the path where they are "
        "mounted"
    )


def _absolute(path: str, disk: Disk) -> str:
    """Resolve links only where the system would follow one before it goes up."""
    return disk.resolve(path) if ".." in path.split(os.sep) else os.path.abspath(path)


_ESCAPE = re.compile(r"\\([0-7]{3})")
_MOUNT_ID = re.compile(r"^mnt_id:\s*(\d+)\s*$", re.MULTILINE | re.ASCII)


def mount_of(path: str) -> Mount | None:
    """Return the mount that a directory is on; None where the system has no table of mounts."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with open(f"/proc/self/fdinfo/{descriptor}") as fdinfo:
            mount_id = mount_id_of(fdinfo.read())
        with open("/proc/self/mountinfo", errors="surrogateescape") as table:
            mountinfo = table.read()
    except OSError:  # not a Linux, or one that shows no /proc
        return None
    finally:
        os.close(descriptor)
    return None if mount_id is None else find_mount(mountinfo, mount_id)


def find_mount(mountinfo: str, mount_id: int) -> Mount | None:
    """Return the mount with that identifier; None where the table does not have it or is cut short.

    By identifier and not by the longest mount point before a path: one mount may hide another.
    """
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        if fields[0] != str(mount_id) or "-" not in fields[6:]:
            continue
        after = fields.index("-", 6) + 1
        if len(fields) < after + 3:
            return None
        options = frozenset(f"{fields[5]},{fields[after + 2]}".split(","))
        return Mount(_unescaped(fields[4]), fields[after], options)
    return None


def mount_id_of(fdinfo: str) -> int | None:
    """Return the identifier of an open file's mount, from its /proc/self/fdinfo entry."""
    found = _MOUNT_ID.search(fdinfo)
    return int(found[1]) if found else None


def _unescaped(path: str) -> str:
    return _ESCAPE.sub(lambda escape: chr(int(escape[1], 8)), path)
