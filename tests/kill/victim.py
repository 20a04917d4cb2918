"""`python -m tests.kill.victim STATUS WORDS…`: `compactor WORDS…`, which tells how far it is.

A line of the file STATUS for each moment worth being killed at: a stage that begins, the first
rename of a swap, a checkpoint. When all is rewritten it waits for as long as there is a file
STATUS.hold. Nothing of the run is changed but who listens to its progress, and that groups of these
small logs are cut into pieces and joined as those of large ones.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cleaner_jobs.staging import STAGED_MARKER
from compactor.command_line import cli, console
from compactor.host.progress import SWAP_STAGE, ProgressSink
from compactor.planning import layout

START, SCAN, RESOLVE, REWRITE, SWAP, REWRITTEN, CHECKPOINT = PHASES = "ascrwxk"
_STAGES = {"scan": SCAN, "resolve": RESOLVE, "rewrite": REWRITE, SWAP_STAGE: REWRITTEN}


def hold_of(status: Path) -> Path:
    """The file that a run waits for."""
    return status.with_name(f"{status.name}.hold")


def phases_of(status: Path) -> list[tuple[str, float]]:
    """The phases that have begun so far, and when."""
    try:
        lines = status.read_text().splitlines()
    except FileNotFoundError:
        return []
    return [(line[0], float(line[1:])) for line in lines]


class Status:
    """Appends a letter and the time where a phase begins."""

    def __init__(self, path: str) -> None:
        self._hold = hold_of(Path(path))
        self._out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._now = ""

    def begin(self, phase: str) -> None:
        if phase != self._now:
            self._now = phase
            os.write(self._out, f"{phase} {time.time()}\n".encode())

    def stage(self, name: str, total: int) -> None:  # noqa: ARG002
        self.begin(_STAGES.get(name, self._now or START))
        while name == SWAP_STAGE and self._hold.exists():
            time.sleep(0.01)

    def advance(self, done: int) -> None:
        pass

    def swapped(self, groups: int) -> None:
        pass

    def message(self, text: str, log: str | None = None) -> None:
        pass

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook: what is renamed tells of a swap or a checkpoint."""
        if event != "os.rename":
            return
        source = os.fsdecode(arguments[0])
        if STAGED_MARKER in source:
            self.begin(SWAP)
        elif source.endswith("-checkpoint.tmp"):
            self.begin(CHECKPOINT)


def main() -> int:
    status = Status(sys.argv[1])
    sys.addaudithook(status.hear)

    @contextmanager
    def open_progress(_: object) -> Iterator[ProgressSink]:
        yield status

    assert "open_progress" in vars(console), "a run opens its progress elsewhere"
    vars(console)["open_progress"] = open_progress
    layout.SMALLEST_SHARE_BYTES = 1
    return cli.main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
