"""The table of mounts, as Linux shows it: which file system a path is on, and of what type.

A line of /proc/self/mountinfo, its fields by spaces:

    36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=continue

identifier, parent's, device, root within the file system, mount point, options, any number of
optional fields, a hyphen, type, source, options of the file system. Blanks and backslashes in a
path are octal escapes. Source: proc(5).
"""

import re
from typing import NamedTuple

_ON_DISKS = "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs", "nilfs2"
_OTHERS = "reiserfs", "tmpfs", "ramfs", "rootfs", "overlay"
LOCAL_TYPES = frozenset((*_ON_DISKS, *_OTHERS))  # this kernel alone knows what is done there

_ESCAPE = re.compile(r"\\([0-7]{3})")
_MOUNT_ID = re.compile(r"^mnt_id:\s*(\d+)\s*$", re.MULTILINE | re.ASCII)


class Mount(NamedTuple):
    """A file system, and where it is mounted."""

    mount_point: str
    type: str  # like ext4, nfs4, fuse.sshfs
    options: frozenset[str]  # of the mount and of the file system


def find_mount(mountinfo: str, mount_id: int) -> Mount | None:
    """The mount with that identifier; None where the table does not say, or cannot be read.

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
    """The mount that an open file is on, from its /proc/self/fdinfo entry."""
    found = _MOUNT_ID.search(fdinfo)
    return int(found[1]) if found else None


def _unescaped(path: str) -> str:
    return _ESCAPE.sub(lambda escape: chr(int(escape[1], 8)), path)
