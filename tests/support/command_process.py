"""The command line as a process of its own: how a shell starts it, ends it and sees its end."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PROJECT = Path(__file__).parents[2]
LAUNCHER = (sys.executable, "-m", "compactor")


def compactor(
    *words: object, launcher: Sequence[str] = LAUNCHER
) -> subprocess.CompletedProcess[str]:
    """Run a command; return how it ended, whatever its exit code is."""
    return subprocess.run(
        [*launcher, *map(str, words)],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def shell_code(returncode: int) -> int:
    """Return the exit code that a shell, a scheduler or spark-submit sees of a process.

    It is 128 and the signal's number where a signal ended it.

    Where Ctrl-C comes while CPython compiles a string, as dataclasses let it, it remembers that and
    ends by that signal at the very end, whatever code was returned to it.
    """
    return 128 - returncode if returncode < 0 else returncode


@contextmanager
def hangups() -> Iterator[None]:
    """Have SIGHUP end this process, and those that it starts meanwhile, as in a terminal.

    A tester may have it ignored, as nohup does.
    """
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
