"""A directory of the disk, copied to memory under its own path."""

import os
from pathlib import Path

from tests.support.files.memory import MemoryFiles


def in_memory(root: Path) -> MemoryFiles:
    """Files and directories below root, all of them on the disk that memory stands for."""
    files = MemoryFiles()
    for parent in [*reversed(root.parents)][1:]:
        files.make_directory(str(parent))
    for directory, _, names in os.walk(root):
        files.make_directory(directory)
        for name in names:
            path = Path(directory, name)
            files.replace_file(str(path), path.read_bytes())
    return files
