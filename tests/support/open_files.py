"""Which files of a directory this process has open."""

import contextlib
import os
from pathlib import Path


def open_below(path: Path) -> list[str]:
    """What each descriptor below a directory leads to, as the kernel names it."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return [target for target in found if target.startswith(f"{path}/")]
