"""A sample of what `python -m tests.bounds` tries; and that fences are no mere ornament."""

import os
import re
import signal
import subprocess
import sys
import textwrap

import pytest

CASES = 40  # with these every kernel is called; `.ci/run` has 1,000 more
OF_THE_ENGINE = {  # and of its tables, those that Python calls
    *("check_batches", "find_place", "find_record", "find_time", "last_batch", "lower_bound"),
    *("recover_batches", "choose_batches", "fill_columns", "make_batches"),
}


def test_no_kernel_leaves_what_it_was_given() -> None:
    """Over logs of every codec and format that have changed since they were scanned."""
    arguments = ["--cases", str(CASES), "--checked-cases", "0", "--made-only"]
    command = [sys.executable, "-m", "tests.bounds", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(rf"^{CASES} tried, 0 wrong, in ", done.stdout, re.MULTILINE)
    assert done.returncode == 0 and found, done.stdout + done.stderr
    called = re.findall(r"cases with the kernel (\w+)$", done.stdout, re.MULTILINE)
    assert not OF_THE_ENGINE - set(called), done.stdout
    for ending in ("rewrite: sound", "rewrite: CorruptFileError", "scan: sound", "inspect: sound"):
        assert ending in done.stdout


@pytest.mark.parametrize(
    ("access", "seed"),
    [
        ("load_be_int64(buffer, buffer.shape[0] - 7)", 1),  # one byte beyond
        ("load_be_int64(buffer, buffer.shape[0] + 2**31)", 1),
        ("load_be_int64(buffer, -1)", 0),
        ("load_be_int64(buffer, -(2**31))", 0),
    ],
)
def test_a_step_over_a_fence_ends_the_process(access: str, seed: int) -> None:
    """Seeds with which the fence is behind the array, or before it."""
    code = f"""
        from random import Random
        import numpy as np
        from numba import njit
        from storage.kernels.memory_access import load_be_int64
        from tests.bounds.guarded import Fences

        @njit
        def kernel(buffer, sound):
            return load_be_int64(buffer, buffer.shape[0] - 8) if sound else {access}

        for sound in (True, False):
            fences = Fences(Random({seed}))
            buffer = np.arange(100, dtype=np.uint8)
            print(fences.call(kernel, (buffer, sound)), flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert (done.returncode, len(done.stdout.split())) == (-signal.SIGSEGV, 1), done.stderr
