"""python -m tests.lies [--count 5000] [--seed N]: the score of the proofs.

Each lie is told in this process and in a worker of the local engine. Prints how many lies of each
kind each proof was the first to catch, and then how many on each engine. It is wrong where one
survived that survivors.toml does not list, one that it lists is caught now, a lie ended the whole
round, too few were caught, or the engines differ. A seed is drawn unless given.
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
from tests.lies.judged import IN_PROCESS
from tests.lies.score import engine_table, listed_survivors, no_longer_survive
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
    problems = [
        *told.problems(listed),
        *(
            f"{name}: {p}"
            for name, found in again.items()
            for p in no_longer_survive(listed, found)
        ),
    ]
    score = told.scores[IN_PROCESS]
    line = f"{score.table()}\n{engine_table(told.scores)}"
    return Tried(problems, line=line, cases=score.lies)


OPTIONS: Options = {
    "--count": {"type": int, "default": 5000},
    "--seed": {"type": int, "default": random.SystemRandom().randrange(SEEDS)},
}
CAMPAIGN = Campaign("tests.lies", __doc__, cases, options=OPTIONS)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
