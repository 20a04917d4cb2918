"""python -m tests.crash [--states N]: every crash state of every story, recovered and gone on with.

Each is recovered by Kafka and by ours, looked at, and cleaned once more, by Kafka's cleaner and by
ours; of some, our recovery is itself cut short in every way. States that lose something are told,
exit 1. --states: so many of each story, spread over its run.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from compactor.host.output import print_line
from tests.crash.matrix import (
    KAFKA,
    KAFKA_UNCLEAN,
    OURS,
    OURS_UNCLEAN,
    Matrix,
    Result,
    crashes_of_recovery,
    recorded,
    sample,
)
from tests.crash.states import crash_states
from tests.crash.stories import STORIES, Story
from tests.oracle import jars

TOLD = 20  # lost states
EVERY = 1 << 62
UNCLEAN = 10  # every tenth state also without the marker of a clean shutdown
RECOVERY_CUT_SHORT = 100  # of every hundredth state our recovery is cut short, in every way


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--states", type=int, default=EVERY)
    parser.add_argument("--story", action="append", help="only this one; may be repeated")
    wanted = parser.parse_args(arguments)
    started, distinct, whole = time.monotonic(), 0, Result()
    for story in STORIES:
        if wanted.story and story.name not in wanted.story:
            continue
        states, result = _try_story(story, wanted.states)
        print_line(f"{story.name}: {states} states, {len(result.lost)} lost")
        distinct += states
        whole.tried += result.tried
        whole.lost += result.lost
    for told in whole.lost[:TOLD]:
        print_line(f"LOST: {told}")
    print_line(
        f"crash states: {distinct} tried, {whole.tried} recoveries, {len(whole.lost)} lost, "
        f"in {time.monotonic() - started:.0f} s"
    )
    return 1 if whole.lost else 0


def _try_story(story: Story, count: int) -> tuple[int, Result]:
    """How many states there were, and what became of them."""
    with tempfile.TemporaryDirectory(prefix=f"crash-{story.name}-") as root:
        work = Path(root)
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
        return len(states) + len(of_recovery), matrix.result


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except jars.OracleUnavailableError as unavailable:
        sys.exit(str(unavailable))
