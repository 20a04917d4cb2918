"""python -m tests.damage: all damages of logs that Kafka wrote, many of them a round."""

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count, islice
from pathlib import Path

import pytest

from tests.campaign import Campaign, Tried
from tests.campaign import Case as Attempt
from tests.damage.campaign import CASES_A_ROUND, KINDS, WRONG, run
from tests.damage.damaged_logs import Case
from tests.support.local_round import LocalRound, open_local_round


def cases(wanted: Namespace, root: Path) -> Iterator[Attempt]:
    with pytest.MonkeyPatch.context() as patch:
        local = open_local_round(root / "work", patch)
        for kind in wanted.only:
            left = KINDS[kind]()
            for number in count(1):
                some = list(islice(left, CASES_A_ROUND))
                if not some:
                    break
                yield Attempt(f"round {number}", partial(_tried, some, local, root), kind)


def _tried(some: Sequence[Case], local: LocalRound, root: Path) -> Tried:
    found = list(run(some, local, root))
    problems = [
        f"{each.ending}: {each.case}: {each.told}" for each in found if each.ending in WRONG
    ]
    return Tried(problems, Counter(str(each.ending) for each in found), cases=len(found))


CAMPAIGN = Campaign("tests.damage", __doc__, cases, list(KINDS))
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
