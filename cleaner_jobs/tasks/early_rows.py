"""Early rows: what a task returns before it has ended.

Spark gives back the rows of a task when it has ended. Rows that the driver may use before then are
also written to a file of the work directory, one a line; each try of a task has a file of its own.
A task that is tried again takes over the early rows of the try before it: by then the driver may
have used them, and what they were made of may be gone.

A line counts once its newline is there; a try that was killed may leave half of one, and so does a
full disk.
"""

import errno
import json
import os
from collections.abc import Iterator

from cleaner_jobs.task_values import Row
from storage.files.filesystem import naming

EARLY_ROWS = "early-rows"  # subdirectory of the work directory


class EarlyRowsFile:
    """The file of one try of a task. Several threads may add rows."""

    def __init__(self, work_dir: str, stage: str, number: int, attempt: str) -> None:
        self._path = os.path.join(work_dir, EARLY_ROWS, f"{stage}-{number}-{attempt}")

    def __enter__(self) -> "EarlyRowsFile":
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._descriptor = os.open(self._path, flags, 0o600)
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


class EarlyRows:
    """Reads the early rows of all tasks of a stage, or of all tries of one of them."""

    def __init__(self, work_dir: str, stage: str, number: int | None = None) -> None:
        self._directory = os.path.join(work_dir, EARLY_ROWS)
        self._prefix = f"{stage}-" if number is None else f"{stage}-{number}-"
        self._read_bytes: dict[str, int] = {}

    def new(self) -> Iterator[Row]:
        """The rows that have come since the last call."""
        for name in sorted(os.listdir(self._directory)):
            if name.startswith(self._prefix):
                start = self._read_bytes.get(name, 0)
                path = os.path.join(self._directory, name)
                with naming(path), open(path, "rb") as source:
                    source.seek(start)
                    data = source.read()
                whole = data[: data.rfind(b"\n") + 1]
                self._read_bytes[name] = start + len(whole)
                for line in whole.splitlines():
                    try:
                        kind, value = json.loads(line)
                    except ValueError:
                        # Behind half a line: the disk was full there, and no longer here. Nobody
                        # goes by it, and when its task ends the row comes with all the others.
                        continue
                    yield kind, value
