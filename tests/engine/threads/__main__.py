"""python -m tests.engine.threads --minutes N: one writer and four readers of a log, in threads.

Logs of some seconds, one after the other, each with a seed. One is wrong where a reader was given
what the model does not have.
"""

import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

from tests.campaign import Campaign, Case, Tried
from tests.engine.threads.model import run

SECONDS = 15.0  # of each log


def cases(wanted: Namespace, root: Path) -> Iterator[Case]:
    until = time.monotonic() + 60 * wanted.minutes
    for seed in count(wanted.from_seed):
        left = until - time.monotonic()
        if left <= 0:
            return
        yield Case(f"seed {seed}", partial(_tried, root / f"t-{seed}", seed, min(SECONDS, left)))


def _tried(path: Path, seed: int, seconds: float) -> Tried:
    model = run(str(path), seed, seconds)
    counts = {"batches written": model.serial, "batches read": model.batches_read}
    return Tried(model.problems, counts)


OPTIONS = {
    "--minutes": {"type": float, "default": 60},
    "--from-seed": {"type": int, "default": time.time_ns() % 1_000_000, "help": "of the first log"},
}
CAMPAIGN = Campaign("tests.engine.threads", __doc__, cases, options=OPTIONS)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
