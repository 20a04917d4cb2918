"""`python -m tests.bounds`: every kernel, between fences, over logs that changed after the scan.

Then once more with numba's own checks of every index, compiled for that alone.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

from tests.bounds import campaign

CASES, CHECKED_CASES = 50_000, 10_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bounds", description=__doc__)
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--checked-cases", type=int, default=CHECKED_CASES)
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--made-only", action="store_true", help="no logs that Kafka wrote")
    wanted = parser.parse_args()
    began = time.monotonic()
    counted = campaign.run(wanted.seed, wanted.cases, not wanted.made_only)
    sys.stdout.write(f"{campaign.table(counted)}\nin {time.monotonic() - began:.0f} s\n")
    code = int(bool(counted.faults))
    if wanted.checked_cases:
        code |= _checked(wanted.checked_cases, wanted.seed, wanted.made_only)
    return code


def _checked(cases: int, seed: int, made_only: bool) -> int:
    """In a process and with a cache of its own: a cached kernel is as it was compiled."""
    sys.stdout.write("with indexes checked:\n")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as cache:
        checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": cache}
        arguments = ["--cases", str(cases), "--checked-cases", "0", "--seed", str(seed)]
        arguments += ["--made-only"] * made_only
        command = [sys.executable, "-m", "tests.bounds", *arguments]
        return subprocess.run(command, env=os.environ | checked, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
