"""Runs a campaign with numba's own checks of every index."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence


def run_with_indexes_checked(module: str, words: Sequence[str]) -> int:
    """Run `python -m module` with a cache of its own: a cached kernel is as it was compiled."""
    with tempfile.TemporaryDirectory() as cache:
        checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, "-m", module, *words]
        return subprocess.run(command, env=os.environ | checked, check=False).returncode
