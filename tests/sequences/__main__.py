"""`python -m tests.sequences`: does `verify --against` tell a loss from what was to go?

Kafka's log manager writes logs, 25 to a directory, and they are copied. Then random commands of
ours (run, killed runs, recover, roll, append, delete-records, undo, copies) and Kafka's own cleaner
and retention change them. With all reports and the settings given, `verify --against` must find
nothing; then a loss is planted in each log, and each must be found, with everything given and with
nothing. Every fifth batch also truncates. Ends with 1 where that is not so.
"""

import argparse
import sys
from pathlib import Path

from compactor.host.output import print_line
from tests.histories.campaign import started
from tests.oracle import jars
from tests.sequences.campaign import BATCH, Score, play, told


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sequences", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="of sequences")
    parser.add_argument("--first", type=int, default=0, help="number of the first batch")
    given = parser.parse_args()
    score = Score()
    with started() as (root, broker):
        for number in range(given.first, given.first + -(-given.count // BATCH)):
            score.add(play(number, Path(root), broker))
    for line in told(score):
        print_line(line)
    return int(bool(score.false_alarms or score.missed or score.problems))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except jars.OracleUnavailableError as unavailable:
        sys.exit(str(unavailable))
