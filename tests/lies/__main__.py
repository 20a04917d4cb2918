"""python -m tests.lies [--count 5000] [--seed N]: the score of the proofs.

Prints a table: kind of lie, and how many of it each proof was the first to catch. Ends with 1 where
one survived that survivors.toml does not list, one that it lists is caught now, a lie ended the
whole round, or too few were caught. A seed is drawn unless given, and printed.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.lies import campaign
from tests.lies.campaign import Campaign
from tests.lies.judged import Finder
from tests.lies.score import listed_survivors, no_longer_survive
from tests.support.local_round import open_local_round

COUNT = 5000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lies")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    asked = parser.parse_args()
    began = time.monotonic()
    sys.stdout.write(f"seed {asked.seed}\n")
    listed = listed_survivors()
    with tempfile.TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patch:
        local = open_local_round(Path(scratch, "work"), patch)
        told = Campaign(local, Path(scratch, "rounds"))
        told.run(asked.count, asked.seed, campaign.sources(), _say)
        again = campaign.judged_again(listed, local, Path(scratch, "again"))
    score = told.score
    problems = [*score.problems(listed), *no_longer_survive(listed, again)]
    seconds, lies = time.monotonic() - began, max(score.lies, 1)
    sys.stdout.write(
        f"{score.table()}\n{score.lies} lies in {seconds:.0f} s, {seconds / lies:.3f} s each, "
        f"{time.process_time() / lies:.3f} s of processor; "
        f"{100 * score.caught(*Finder):.2f} % caught, by run and verify alone "
        f"{100 * score.caught(Finder.RUN, Finder.VERIFY):.2f} %\n"
    )
    for problem in problems:
        sys.stdout.write(f"WRONG: {problem}\n")
    return int(bool(problems))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
