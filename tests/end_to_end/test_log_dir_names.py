"""What a starting broker minds in a log directory: nothing of that is ever there, nor touched.

A directory that is not named like a partition ends a broker, and one that is, without a
`partition.metadata` of its topic, is renamed to `-stray` and replaced by an empty log. The kernel
tells here of every name that appears while a run works, however short its life: from within the
log directory, where Spark's Java and whatever else leaves things where it was started.
"""

import ctypes
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from storage.file_names import INDEX, LOG, file_name
from storage.formats import clean_shutdown
from tests.compactor.small_log import build
from tests.end_to_end.test_cli import summary
from tests.support.command_process import PROJECT
from tests.support.file_states import state_of

UUID = "0123456789abcdef0123456789abcdef"
NO_BUSINESS_OF_OURS = (
    f"orders-1.{UUID}-delete",
    f"orders-1.{UUID}-stray",
    f"orders-1.{UUID}-future",
    "__cluster_metadata-0",
)
LEFT = (".log.deleted", ".log.cleaned", ".log.swap", ".log.compactor-1-2", ".index.deleted")
# inotify(7)
IN_CREATE, IN_MOVED_TO, IN_ISDIR = 0x100, 0x80, 0x40000000
EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name behind it


class Names:
    """The names that appeared in some directories: those of directories, and those of files."""

    def __init__(self) -> None:
        self.directories: set[str] = set()
        self.files: set[str] = set()


@contextmanager
def appearing(*directories: Path) -> Iterator[Names]:
    """Complete when the block has ended."""
    libc, names = ctypes.CDLL(None, use_errno=True), Names()
    descriptor = libc.inotify_init1(os.O_NONBLOCK)
    assert descriptor >= 0, os.strerror(ctypes.get_errno())
    try:
        for path in directories:
            watch = libc.inotify_add_watch(descriptor, os.fsencode(path), IN_CREATE | IN_MOVED_TO)
            assert watch >= 0, os.strerror(ctypes.get_errno())
        yield names
        for mask, name in _events(descriptor):
            (names.directories if mask & IN_ISDIR else names.files).add(name)
    finally:
        os.close(descriptor)


def _events(descriptor: int) -> Iterator[tuple[int, str]]:
    while True:
        try:
            data = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return
        while data:
            watch, mask, _, length = EVENT.unpack_from(data)
            assert watch != -1, "more happened than the kernel kept"
            name = data[EVENT.size : EVENT.size + length].rstrip(b"\0")
            yield mask, os.fsdecode(name)
            data = data[EVENT.size + length :]


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_run_makes_no_directory_and_touches_none_that_is_not_a_log(
    tmp_path: Path, engine: str
) -> None:
    """F-1.3, F-1.4: recovery, cleaning and retention; the lock does not guard the metadata log."""
    partition = build(tmp_path / "logs")
    log_dir = partition.parent
    clean_shutdown.write(str(log_dir))
    for number, name in enumerate(NO_BUSINESS_OF_OURS):
        other = build(tmp_path / str(number))  # as dirty, and as old, as the log that is cleaned
        for suffix in LEFT:
            (other / f"{5:020}{suffix}").write_bytes(b"left")
        other.rename(log_dir / name)
    (partition / f"{file_name(0, LOG)}.deleted").write_bytes(b"")  # something to recover
    before = {name: state_of(log_dir / name) for name in NO_BUSINESS_OF_OURS}
    topics = tmp_path / "topics.json"
    settings = {"cleanup.policy": "compact,delete", "retention.ms": "1"}
    topics.write_text(json.dumps({"orders": settings, "__cluster_metadata": settings}))
    log_dirs = [log_dir, *(log_dir / name for name in (partition.name, *NO_BUSINESS_OF_OURS))]
    with appearing(*log_dirs) as names:
        words = ["run", ".", "--topic-configs", str(topics), "--no-metadata"]
        words += ["--engine", engine]
        done = subprocess.run(
            [sys.executable, "-m", "compactor", *words],
            capture_output=True,
            text=True,
            cwd=log_dir,
            timeout=300,
            env={**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1"},
        )
    assert done.returncode == 0, done
    assert summary(done)["totals"]["logs"]["cleaned"] == 1
    assert names.directories == set()
    assert {".lock", f"{file_name(0, INDEX)}.swap"} <= names.files  # it was looked at, as it went
    assert {path.name for path in log_dir.iterdir() if path.is_dir()} == {
        partition.name,
        *NO_BUSINESS_OF_OURS,
    }
    assert {name: state_of(log_dir / name) for name in NO_BUSINESS_OF_OURS} == before
