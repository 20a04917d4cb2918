"""The command line as a process of its own, as a shell starts it."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PROJECT = Path(__file__).parents[2]
LAUNCHER = (sys.executable, "-m", "compactor")


def compactor(
    *words: object, launcher: Sequence[str] = LAUNCHER
) -> subprocess.CompletedProcess[str]:
    """How it ended, whatever its exit code is."""
    return subprocess.run(
        [*launcher, *map(str, words)],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
