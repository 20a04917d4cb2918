"""python -m tests.lies [--count 5000] [--seed N]: the score of the proofs.

Prints a table: kind of lie, and how many of it each proof was the first to catch. It is wrong where
one survived that survivors.toml does not list, one that it lists is caught now, a lie ended the
whole round, or too few were caught. A seed is drawn unless given.
"""

import random
import sys
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from compactor.host.output import print_line
from tests.campaign import SEEDS, Campaign, Case, Options, Tried
from tests.lies import campaign
from tests.lies.judged import Finder
from tests.lies.score import listed_survivors, no_longer_survive
from tests.support.local_round import LocalRound, open_local_round


def cases(wanted: Namespace, root: Path) -> Iterator[Case]:
    with pytest.MonkeyPatch.context() as patch:
        local = open_local_round(root / "work", patch)
        yield Case(f"seed {wanted.seed}", partial(_tried, wanted, local, root))


def _tried(wanted: Namespace, local: LocalRound, root: Path) -> Tried:
    listed = listed_survivors()
    told = campaign.Campaign(local, root / "rounds")
    print_line(f"seed {wanted.seed}")
    told.run(wanted.count, wanted.seed, campaign.sources(), print_line)
    again = campaign.judged_again(listed, local, root / "again")
    score = told.score
    caught, alone = score.caught(*Finder), score.caught(Finder.RUN, Finder.VERIFY)
    line = f"{score.table()}\n{score.lies} lies; {100 * caught:.2f} % caught, "
    line += f"by run and verify alone {100 * alone:.2f} %"
    problems = [*score.problems(listed), *no_longer_survive(listed, again)]
    return Tried(problems, line=line, cases=score.lies)


OPTIONS: Options = {
    "--count": {"type": int, "default": 5000},
    "--seed": {"type": int, "default": random.SystemRandom().randrange(SEEDS)},
}
CAMPAIGN = Campaign("tests.lies", __doc__, cases, options=OPTIONS)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
