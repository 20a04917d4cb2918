"""What every file is, to see that nothing was changed, and which files this process has open."""

import contextlib
import gc
import os
from pathlib import Path
from typing import NamedTuple

from storage.files.disk_hints import wait_until_freed


class FileState(NamedTuple):
    data: bytes
    mtime_ns: int
    inode: int


State = dict[str, FileState]  # by path below a root


def state_of(root: Path) -> State:
    """Return every file below root."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            stat = path.stat()
            found[str(path.relative_to(root))] = FileState(
                path.read_bytes(), stat.st_mtime_ns, stat.st_ino
            )
    return found


def open_below(path: Path) -> list[str]:
    """Return what each descriptor below a directory leads to, as the kernel names it."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return [target for target in found if target.startswith(f"{path}/")]


def open_files() -> set[str]:
    """Return the numbers of all descriptors, of none that is about to be closed by itself.

    What tests before have left may still be closed in the background, or by the collector.
    """
    wait_until_freed()
    gc.collect()
    return set(os.listdir("/proc/self/fd"))
