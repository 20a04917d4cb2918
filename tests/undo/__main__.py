"""`python -m tests.undo`: what an undoing does after every sequence of up to three steps, and after
seeded ones of four and five, on four kinds of log, held against a model.

Seeds are fresh in each call unless given; a sequence that goes wrong is printed with its seed.
"""

import argparse
import os
import random
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context

from compactor.host.output import print_line
from tests.undo.campaign import Tally, play
from tests.undo.steps import Sequence, every, seeded
from tests.undo.world import KINDS

SEEDS = 2**31
SHARE = 100  # sequences that a process takes at once


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.undo", description=__doc__)
    parser.add_argument("--steps", type=int, default=3, help="every sequence of up to so many")
    parser.add_argument("--count", type=int, default=5000, help="of seeded ones")
    parser.add_argument("--first-seed", type=int)
    wanted = parser.parse_args()
    first = random.randrange(SEEDS) if wanted.first_seed is None else wanted.first_seed
    kinds = tuple(KINDS)
    wrong = _try(f"up to {wanted.steps} steps", every(kinds, wanted.steps))
    seeds = range(first, first + wanted.count)
    wrong += _try(f"4 and 5 steps, seeds from {first} on", seeded(kinds, seeds))
    return 1 if wrong else 0


def _try(name: str, sequences: Iterable[Sequence]) -> int:
    """How many went wrong."""
    began, tally = time.monotonic(), Tally()
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as processes:
        for done in processes.map(play, _shares(iter(sequences))):
            tally.add(done)
            for told in done.wrong:
                print_line(f"WRONG: {told}")
    undoings = ", ".join(f"{count:,} {what}" for what, count in sorted(tally.undoings.items()))
    print_line(
        f"{name}: {tally.sequences:,} sequences of {tally.steps:,} steps; undoings: {undoings}; "
        f"{len(tally.wrong)} wrong, in {time.monotonic() - began:.0f} s"
    )
    return len(tally.wrong)


def _shares(sequences: Iterator[Sequence]) -> Iterator[list[Sequence]]:
    while share := list(islice(sequences, SHARE)):
        yield share


if __name__ == "__main__":
    sys.exit(main())
