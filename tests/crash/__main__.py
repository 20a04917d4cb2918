"""python -m tests.crash [--states N]: every crash state of every story, recovered and gone on with.

Each is recovered by Kafka and by ours, looked at, and cleaned once more, by Kafka's cleaner and by
ours; of some, our recovery is itself cut short in every way. A state that loses something is wrong.
--states: so many of each story, spread over its run.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.campaign import Campaign, Case, Tried
from tests.crash.matrix import (
    KAFKA,
    KAFKA_UNCLEAN,
    OURS,
    OURS_UNCLEAN,
    Matrix,
    crashes_of_recovery,
    recorded,
    sample,
)
from tests.crash.states import crash_states
from tests.crash.stories import STORIES, Story

EVERY = 1 << 62
UNCLEAN = 10  # every tenth state also without the marker of a clean shutdown
RECOVERY_CUT_SHORT = 100  # of every hundredth state our recovery is cut short, in every way


def cases(wanted: Namespace, root: Path) -> Iterator[Case]:
    for story in STORIES:
        if story.name in wanted.only:
            attempt = partial(_tried, story, wanted.states, root / story.name)
            yield Case("all states", attempt, story.name)


def _tried(story: Story, count: int, work: Path) -> Tried:
    work.mkdir()
    run = recorded(story, work)
    states = sample(list(crash_states(run.record)), count)
    matrix = Matrix(run, work)
    matrix.try_states(states, KAFKA)
    matrix.try_states(states, OURS)
    for recovery in (OURS_UNCLEAN, KAFKA_UNCLEAN):
        matrix.try_states(sample(states, len(states) // UNCLEAN), recovery)
    of_recovery = [
        again
        for state in sample(states, len(states) // RECOVERY_CUT_SHORT)
        for again in crashes_of_recovery(run, state, work)
    ]
    for recovery in (OURS, KAFKA):
        matrix.try_states(of_recovery, recovery)
    result, tried = matrix.result, len(states) + len(of_recovery)
    return Tried(result.lost, {"recoveries": result.tried}, cases=tried)


CAMPAIGN = Campaign(
    "tests.crash",
    __doc__,
    cases,
    groups=[story.name for story in STORIES],
    options={"--states": {"type": int, "default": EVERY}},
)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
