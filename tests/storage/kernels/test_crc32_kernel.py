"""The checksum of legacy messages: Python's own function says what it has to be."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from zlib import crc32

import numpy as np

from storage.kernels.crc32_kernel import FOLDED_BYTES, crc32_between

SPANS = [(0, 0), (7, 8), (1, 9), (3, 20), (0, 3000)]
SPANS += [(5, 5 + FOLDED_BYTES * blocks + more) for blocks in (1, 2, 7) for more in (-1, 0, 1, 63)]


def differing() -> list[tuple[int, int]]:
    """Where the kernel's checksum is another one than Python's."""
    chance = Random(1)
    data = chance.randbytes(3000)
    buffer = np.frombuffer(data, np.uint8).copy()
    more = [(chance.randrange(100), chance.randrange(100, 3000)) for _ in range(300)]
    return [at for at in SPANS + more if crc32_between(buffer, *at) != crc32(data[slice(*at)])]


def test_it_is_that_of_zlib() -> None:
    assert differing() == []


def test_it_is_the_same_on_a_processor_that_has_no_instruction_for_it(tmp_path: Path) -> None:
    """Kernels are compiled for one, which is not this one."""
    code = (
        "from storage.kernels import crc32_kernel\n"
        "from tests.storage.kernels.test_crc32_kernel import differing\n"
        "print(crc32_kernel._CAN_FOLD, differing())"
    )
    generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": tmp_path}
    environment = os.environ | {name: str(value) for name, value in generic.items()}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("False []\n", "")
