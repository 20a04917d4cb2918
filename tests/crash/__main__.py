"""python -m tests.crash [--states N]: every crash state of every story, brought up by Kafka.

Each state is recovered, looked at, and cleaned once more, by Kafka's cleaner and by ours. States
that lose something are told, exit 1. --states: so many of each story, spread over its run.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from compactor.output import print_line
from tests.crash.matrix import KAFKA, KAFKA_UNCLEAN, OURS, Matrix, recorded, sample
from tests.crash.states import crash_states
from tests.crash.stories import STORIES
from tests.oracle import jars

TOLD = 20  # lost states
EVERY = 1 << 62
RECOVERIES = (KAFKA, OURS, KAFKA_UNCLEAN)


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
        for recovery in RECOVERIES:
            matrix.try_states(states, recovery)
        distinct += len(states)
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
