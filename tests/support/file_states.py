"""What every file is, to see that nothing was changed."""

import os
from pathlib import Path
from typing import NamedTuple


class FileState(NamedTuple):
    data: bytes
    mtime_ns: int
    inode: int


State = dict[str, FileState]  # by path below a root


def state_of(root: Path) -> State:
    """Every file below root."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            stat = path.stat()
            found[str(path.relative_to(root))] = FileState(
                path.read_bytes(), stat.st_mtime_ns, stat.st_ino
            )
    return found
