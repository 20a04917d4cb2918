"""Directories that real brokers left, for commands that are run as an operator runs them.

make_broker_dirs.py says what is in each.
"""

import functools
import io
import lzma
import os
import shutil
import tarfile
from pathlib import Path

from tests.golden.corpora import write_sparse

ARCHIVE = Path(__file__).with_name("broker_dirs.tar.xz")
STOPPED, KILLED, TWO, OTHER, CONFIGS = "stopped", "killed", "two", "other", "configs.txt"


def write_broker_dir(name: str, target: Path) -> None:
    """Write the directory or file of this name, with its times of change; what is there goes."""
    if target.is_dir():
        shutil.rmtree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(_unpacked()), mode="r:") as archive:
        times = []
        for entry in archive:
            if entry.name != name and not entry.name.startswith(f"{name}/"):
                continue
            path = target / entry.name.removeprefix(name).removeprefix("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            if entry.isdir():
                path.mkdir()
            else:
                content = archive.extractfile(entry)
                assert content is not None, entry.name
                write_sparse(path, content.read())
            times.append((path, round(entry.mtime * 1e9)))
    assert times, name
    for path, mtime_ns in reversed(times):
        os.utime(path, ns=(mtime_ns, mtime_ns))


@functools.cache
def _unpacked() -> bytes:
    return lzma.decompress(ARCHIVE.read_bytes())
