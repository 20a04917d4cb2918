"""Partial results: the rows of a task that the driver may use before the task has ended.

Spark returns the rows of a task when it has ended. A task also writes the rows that the driver may
use earlier to a file of the work directory, one row a line; each attempt has a file of its own. A
retried task takes over the partial results of the attempt before it: by then the driver may have
used them, and their sources may be gone.

A line counts once its newline is written. An attempt that was killed, or a full disk, may leave
half a line.
"""

import errno
import json
import os
from collections.abc import Iterator

from cleaner_jobs.messages import Row
from storage.files.descriptors import naming
from storage.files.files import Disk, Files
from storage.files.local import LOCAL

DIRECTORY = "partial-results"  # subdirectory of the work directory


class PartialResultsFile:
    """The file of one try of a task. Several threads may add rows."""

    def __init__(
        self, work_dir: str, stage: str, number: int, attempt: str, disk: Disk = LOCAL
    ) -> None:
        self._disk = disk
        self._path = os.path.join(work_dir, DIRECTORY, f"{stage}-{number}-{attempt}")

    def __enter__(self) -> "PartialResultsFile":
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._descriptor = self._disk.open_descriptor(self._path, flags)
        return self

    def __exit__(self, *_: object) -> None:
        with naming(self._path):
            os.close(self._descriptor)

    def add(self, row: Row) -> None:
        line = json.dumps(row).encode() + b"\n"
        with naming(self._path):
            written = os.write(self._descriptor, line)  # one call, so that lines never mix
            if written != len(line):
                problem = f"{written} of {len(line)} bytes were written"
                raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: {problem}")


class PartialResults:
    """Reads the partial results of all tasks of a stage, or of all tries of one of them."""

    def __init__(
        self, work_dir: str, stage: str, number: int | None = None, files: Files = LOCAL
    ) -> None:
        self._files = files
        self._directory = os.path.join(work_dir, DIRECTORY)
        self._prefix = f"{stage}-" if number is None else f"{stage}-{number}-"
        self._read_bytes: dict[str, int] = {}

    def new(self) -> Iterator[Row]:
        """Yield the rows that have come since the last call."""
        _, names = self._files.list_names(self._directory)
        for name in sorted(names):
            if name.startswith(self._prefix):
                start = self._read_bytes.get(name, 0)
                path = os.path.join(self._directory, name)
                with self._files.open(path) as source:
                    data = source.read(start, source.entry.size_bytes - start)
                whole = data[: data.rfind(b"\n") + 1]
                self._read_bytes[name] = start + len(whole)
                for line in whole.splitlines():
                    try:
                        kind, value = json.loads(line)
                    except ValueError:
                        # After half a line: the disk was full there, and no longer here. Nobody
                        # goes by it, and when its task ends the row comes with all the others.
                        continue
                    yield kind, value
