"""Another size, time or inode than at planning is drift."""

import os
from pathlib import Path

import pytest

from cleaner_jobs.task_values import Source
from cleaner_jobs.unchanged import LogChangedError, check_unchanged


def source_of(path: Path) -> Source:
    stat = path.stat()
    return Source(str(path), 0, stat.st_size, stat.st_mtime_ns, stat.st_ino)


def test_an_untouched_file_is_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"abc")
    check_unchanged(source_of(path), path.stat())


@pytest.mark.parametrize("what", ["size", "modification time", "inode"])
def test_drift_is_named_with_before_and_after(tmp_path: Path, what: str) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"abc")
    source = source_of(path)
    times = (source.log_mtime_ns, source.log_mtime_ns)
    if what == "inode":
        other = tmp_path / "other"
        other.write_bytes(b"abc")
        other.replace(path)
    if what == "size":
        path.write_bytes(b"abcd")
    os.utime(path, ns=times)
    if what == "modification time":
        os.utime(path, ns=(times[0], times[1] + 1))
    with pytest.raises(LogChangedError, match=rf"0\.log: {what} was \d+, is \d+"):
        check_unchanged(source, path.stat())
