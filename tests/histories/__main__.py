"""`python -m tests.histories`: random histories of logs, under brokers and under us.

Each is the same whenever it is told by the same number, so that a campaign can be gone on with, or
a batch be run again, by --first. What goes wrong is made as short as it gets and printed, and with
--found written to a file that can be kept in tests/histories/cases. One batch in fifty has its runs
on Spark, some of them killed by SIGKILL.

--mutants puts back defects that there once were, one at a time, and says which history finds it;
--record tells the kept cases again with Kafka, and writes down what it says for `make test`.
"""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from compactor.host.output import print_line
from tests.histories import kept_cases
from tests.histories.campaign import Result, Wanted, play, started
from tests.histories.generator import BATCH
from tests.histories.mutants import MUTANTS
from tests.oracle import jars

SHARE = 10  # batches that a process takes at once


def main() -> int:
    """1 if anything did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("--count", type=int, help="of histories: 10,000, or 2,000 of each mutant")
    parser.add_argument("--first", type=int, default=0, help="number of the first batch")
    parser.add_argument("--size", type=int, default=BATCH, help="histories in a batch")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--found", type=Path, help="directory for what went wrong")
    parser.add_argument("--as-is", action="store_true", help="do not make it short")
    parser.add_argument("--without-spark", action="store_true", help="no batch is run on Spark")
    parser.add_argument("--mutants", action="store_true", help="put defects back, and find them")
    parser.add_argument("--record", action="store_true", help="tell the kept cases again")
    given = parser.parse_args()
    count = given.count or (2_000 if given.mutants else 10_000)
    batches = range(given.first, given.first + -(-count // given.size))
    if given.record:
        return _record()
    wanted = Wanted(
        size=given.size,
        shortens=not (given.as_is or given.mutants),
        on_spark=not (given.without_spark or given.mutants),
        found=given.found,
        mutant=None,
    )
    if given.mutants:
        return _find_mutants(batches, wanted)
    return _campaign(batches, wanted, given.processes)


def _campaign(batches: range, wanted: Wanted, processes: int) -> int:
    began, result = time.monotonic(), Result()
    shares = [batches[at : at + SHARE] for at in range(0, len(batches), SHARE)]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for done in pool.map(partial(play, wanted), shares):
            result.add(done)
    for what, count in sorted(result.counts.items()):
        print_line(f"{count:10,} {what}")
    for violation in result.violations:
        print_line(f"VIOLATION {violation.name}: {violation.problem}")
    print_line(
        f"{result.histories:,} histories of {result.steps:,} steps, "
        f"{result.seconds / result.histories:.3f} s of processor each, "
        f"{len(result.violations)} violations, in {time.monotonic() - began:.0f} s"
    )
    return 1 if result.violations else 0


def _find_mutants(batches: range, wanted: Wanted) -> int:
    """1 if one of them was not found."""
    missed = 0
    for name in MUTANTS:
        result = play(wanted._replace(mutant=name), batches)
        missed += not result.violations
        first = next(iter(result.violations), None)
        told = f"found by {first.name}: {first.problem[:200]}" if first else "NOT FOUND"
        print_line(f"{name}: of {result.histories:,} histories {told}")
    return 1 if missed else 0


def _record() -> int:
    wrong = 0
    with started() as (root, broker):
        for path in kept_cases.scripts():
            problems = kept_cases.record(path, root / path.stem, broker)
            wrong += bool(problems)
            print_line(f"{path.stem}: {'; '.join(problems) or 'recorded'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except jars.OracleUnavailableError as unavailable:
        sys.exit(str(unavailable))
