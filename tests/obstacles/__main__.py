"""`python -m tests.obstacles [--count 500]`: what doctor, plan and run say of a run.

Each drawing puts one or two random obstacles in the way of a run by a user who may not do
everything, asks `doctor` and `plan` how it would end, and then lets it run. All three have to name
the same exit code and reason code.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from tests.campaign import Campaign, Case, Tried, of_seeds
from tests.obstacles.loaded import load_all
from tests.obstacles.verdicts import verdict_of


def cases(wanted: Namespace, root: Path) -> Iterator[Case]:
    root.chmod(0o755)
    load_all(root / "loaded")

    def attempt(seed: int) -> Tried:
        place = root / str(seed)
        place.mkdir()
        place.chmod(0o755)
        verdict = verdict_of(seed, place)
        code, reason = verdict.endings["run"]
        obstacles = " and ".join(verdict.obstacles)
        problems = [f"{obstacles}: {problem}" for problem in verdict.problems]
        return Tried(problems, {f"{int(code)} {reason}": 1})

    return of_seeds(wanted, attempt)


CAMPAIGN = Campaign("tests.obstacles", __doc__, cases, count=500)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
