"""python -m tests.engine.pairs --count N: every pair of operations of a log manager, beside one
another in two threads, and in two processes.

A case is wrong where a log directory went offline, an update of a checkpoint was lost, or a deleted
key came back.
"""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.campaign import Campaign, Case, Tried, of_seeds
from tests.engine.pairs import threads
from tests.engine.pairs.processes import Processes


def cases(wanted: Namespace, _: Path) -> Iterator[Case]:
    with Processes() as processes:
        for way in wanted.only:
            play = threads.play if way == "threads" else processes.play
            yield from of_seeds(wanted, _attempt(way, play), way)


def _attempt(way: str, play: Callable[[int], threads.Played]) -> Callable[[int], Tried]:
    def attempt(seed: int) -> Tried:
        played = play(seed)
        problems = [f"{' beside '.join(played.pair)}: {problem}" for problem in played.problems]
        counts = {
            f"operations of {way}": len(played.pair),
            f"operations of {way} that did what they were to do": played.done,
        }
        return Tried(problems, counts)

    return attempt


CAMPAIGN = Campaign(
    "tests.engine.pairs", __doc__, cases, groups=("threads", "processes"), count=1000
)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
