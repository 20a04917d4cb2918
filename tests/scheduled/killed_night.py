"""`python -m tests.scheduled.killed_night ROOT HOUR RENAMES`: a night's run that SIGKILL ends.

It dies in its swaps, before the rename that follows so many. The clock stands still.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cleaner_jobs.staging import STAGED_MARKER
from tests.scheduled.nights import Host


def main() -> None:
    root, hour, renames = Path(sys.argv[1]), *map(int, sys.argv[2:])
    with pytest.MonkeyPatch.context() as patch:
        host = Host(root, patch, hour)
        patch.setattr(time, "time_ns", lambda: host.now_ms * 1_000_000)
        sys.addaudithook(_death_after(renames))
        sys.exit(host.run())


def _death_after(renames: int) -> Callable[[str, tuple[Any, ...]], None]:
    """An audit hook, which hears of a rename before it is done. The first one of a swap takes a
    staged file to its place."""
    done = -1

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal done
        if event == "os.rename" and (done >= 0 or STAGED_MARKER in os.fsdecode(arguments[0])):
            done += 1
            if done == renames:
                os.kill(os.getpid(), signal.SIGKILL)

    return hear


if __name__ == "__main__":
    main()
