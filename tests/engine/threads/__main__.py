"""python -m tests.engine.threads --minutes N: one writer and four readers of a log, in threads.

Logs of some seconds, one after the other, each with a seed that is told. Exit 1 where a reader was
given what the model does not have.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from compactor.host.output import print_line
from tests.engine.threads.model import run

SECONDS = 15.0  # of each log


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.engine.threads", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    wanted = parser.parse_args()
    until = time.monotonic() + 60 * wanted.minutes
    seed, written, read, wrong = wanted.seed, 0, 0, 0
    while (left := until - time.monotonic()) > 0:
        with tempfile.TemporaryDirectory(prefix="threads-") as scratch:
            model = run(str(Path(scratch) / "t-0"), seed, min(SECONDS, left))
        for problem in model.problems:
            print_line(f"seed {seed}: {problem}")
        wrong += bool(model.problems)
        written, read, seed = written + model.serial, read + model.batches_read, seed + 1
    print_line(
        f"{seed - wanted.seed} logs, {written:,} batches written, {read:,} read, {wrong} logs wrong"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
