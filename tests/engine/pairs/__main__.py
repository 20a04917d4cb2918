"""python -m tests.engine.pairs --schedules N: every pair of operations of a log manager, beside one
another in two threads, and in two processes.

Exit 1 where a log directory went offline, an update of a checkpoint was lost, or a deleted key came
back. --first-seed plays those schedules again.
"""

import argparse
import sys
import time

from compactor.host.output import print_line
from tests.engine.pairs import threads
from tests.engine.pairs.processes import PAIRS, Processes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.engine.pairs", description=__doc__)
    parser.add_argument("--schedules", type=int, default=2000, help="half in each way")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", choices=("threads", "processes"))
    wanted = parser.parse_args()
    ways = [wanted.only] if wanted.only else ["threads", "processes"]
    count = -(-wanted.schedules // len(ways))
    wrong = 0
    with Processes() as processes:
        for way in ways:
            of_threads = way == "threads"
            pairs = len(threads.PAIRS if of_threads else PAIRS)
            seeds = range(wanted.first_seed, wanted.first_seed + count)
            began, before = time.monotonic(), wrong
            done = 0
            for seed in seeds:
                played = (threads.play if of_threads else processes.play)(seed)
                done += played.done
                wrong += bool(played.problems)
                for problem in played.problems:
                    print_line(f"{way}, seed {seed}: {' beside '.join(played.pair)}: {problem}")
            print_line(
                f"{way}: {pairs} pairs, {count:,} schedules, {done:,} of {2 * count:,} did what "
                f"they were to do, {wrong - before} wrong, {time.monotonic() - began:.0f} s"
            )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
