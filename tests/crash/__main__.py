"""python -m tests.crash [--states N]: every crash state of every story, recovered and gone on with.

Each is recovered by Kafka and by ours, looked at, and cleaned once more, by Kafka's cleaner and by
ours; of some, our recovery is itself cut short in every way. States that lose something are told,
exit 1. --states: so many of each story, spread over its run.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from compactor.output import print_line
from tests.crash.matrix import (
    KAFKA,
    KAFKA_UNCLEAN,
    OURS,
    Matrix,
    crashes_of_recovery,
    recorded,
    sample,
)
from tests.crash.states import crash_states
from tests.crash.stories import STORIES
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
    started, tried, distinct, lost = time.monotonic(), 0, 0, list[str]()
    for story in STORIES:
        if wanted.story and story.name not in wanted.story:
            continue
        work = Path(tempfile.mkdtemp(prefix=f"crash-{story.name}-"))
        run = recorded(story, work)
        states = sample(list(crash_states(run.record)), wanted.states)
        matrix = Matrix(run, work)
        matrix.try_states(states, KAFKA)
        matrix.try_states(states, OURS)
        matrix.try_states(sample(states, len(states) // UNCLEAN), KAFKA_UNCLEAN)
        of_recovery = [
            again
            for state in sample(states, len(states) // RECOVERY_CUT_SHORT)
            for again in crashes_of_recovery(run, state, work)
        ]
        for recovery in (OURS, KAFKA):
            matrix.try_states(of_recovery, recovery)
        distinct += len(states) + len(of_recovery)
        print_line(
            f"{story.name}: {len(states)} states of a run, {len(of_recovery)} of a recovery, "
            f"{len(matrix.result.lost)} lost"
        )
        tried += matrix.result.tried
        lost += matrix.result.lost
        shutil.rmtree(work)
    for told in lost[:TOLD]:
        print_line(f"LOST: {told}")
    print_line(
        f"crash states: {distinct} tried, {tried} recoveries, {len(lost)} lost, "
        f"in {time.monotonic() - started:.0f} s"
    )
    return 1 if lost else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except jars.OracleUnavailableError as unavailable:
        sys.exit(str(unavailable))
