"""What logs may stand on: the backends that are taken for in-place work, the mount of a directory.

The one module that imports fsspec. What a backend has to promise is said in `filesystem`.
"""

import os

from storage.errors import UnsupportedBackendError
from storage.files import mount_table
from storage.files.filesystem import read_bytes
from storage.files.mount_table import Mount

_LOCAL_PROTOCOLS = ("file", "local")


def require_in_place(url: str) -> str:
    """Give the absolute local path of a plain path or a file:// URL.

    Raise UnsupportedBackendError for everything else, also for a protocol nobody knows.
    """
    if "://" not in url and "::" not in url:
        return _absolute(url)
    import fsspec  # only here: a plain path should not wait 0.1 s for it

    protocol = url.partition("::")[0] if "::" in url else url.partition("://")[0]
    if protocol in _LOCAL_PROTOCOLS:
        return _absolute(str(fsspec.get_filesystem_class("file")._strip_protocol(url)))
    known = "" if protocol in fsspec.available_protocols() else ", which is not known here"
    raise UnsupportedBackendError(
        f"{url}: begins with {protocol}:{known}. Logs are compacted in directories of this "
        "machine, or mounted on it: copy them to a disk first, or give the path where they are "
        "mounted"
    )


def _absolute(path: str) -> str:
    """Without links only where the system would follow one before it goes up."""
    return os.path.realpath(path) if ".." in path.split(os.sep) else os.path.abspath(path)


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
