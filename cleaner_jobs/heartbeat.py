"""How far a running task has come: a number in a file of its own that the driver looks at."""

import os
import struct

_COUNT = struct.Struct("<q")


def _directory(work_dir: str) -> str:
    return os.path.join(work_dir, "progress")


class Heartbeat:
    """Counts the bytes of log that a task has worked through."""

    def __init__(self, work_dir: str, stage: str, number: int, attempt: str) -> None:
        name = f"{stage}-{number}-{attempt}"
        self._path = os.path.join(_directory(work_dir), name)
        self._done_bytes = 0

    def __enter__(self) -> "Heartbeat":
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def advance(self, log_bytes: int) -> None:
        self._done_bytes += log_bytes
        os.pwrite(self._descriptor, _COUNT.pack(self._done_bytes), 0)


def done_bytes(work_dir: str, stage: str) -> int:
    """The bytes that the tasks of a stage have worked through; of several attempts the furthest."""
    done: dict[str, int] = {}
    directory = _directory(work_dir)
    for name in os.listdir(directory):
        its_stage, number, _ = name.split("-", 2)
        if its_stage == stage:
            with open(os.path.join(directory, name), "rb") as source:
                data = source.read(_COUNT.size)
            if len(data) == _COUNT.size:
                done[number] = max(done.get(number, 0), _COUNT.unpack(data)[0])
    return sum(done.values())
