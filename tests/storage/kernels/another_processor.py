"""Runs a program as on a processor without special instructions: kernels are compiled for it."""

import os
import subprocess
import sys
from pathlib import Path

WITHOUT_WIDE_VECTORS = "False False"  # what `vectors_in` shows of such a kernel


def vectors_in(kernel: str) -> str:
    """A program that shows whether the code of a kernel has vectors of 256 and 512 bits."""
    return f"code = ''.join({kernel}.inspect_asm().values())\nprint('ymm' in code, 'zmm' in code)"


def shown_by(code: str, cache: Path, features: str = "") -> list[str]:
    """Return the lines that a program shows there.

    cache: for its kernels, of which none is kept yet. features: instructions that it has after all,
    as NUMBA_CPU_FEATURES names them.
    """
    processor = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": features}
    environment = os.environ | processor | {"NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout.splitlines()
