"""`python -m tests.histories`: random histories of logs, under brokers and under us.

Each is the same whenever it is played by the same number. What goes wrong is made as short as it
gets and printed, and with --found written to a file that can be kept in tests/histories/cases. One
batch in fifty has its runs in processes of their own, each on the local engine or on Spark, some of
them killed by SIGKILL.

--mutants puts back defects that there once were, one at a time, and says which history finds it;
--record plays the kept cases again with Kafka, and writes down what it says for `make test`.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.campaign import Campaign, Case, Options, Tried
from tests.histories import kept_cases
from tests.histories.broker_process import BrokerProcess
from tests.histories.campaign import Batches, Wanted
from tests.histories.generator import BATCH
from tests.histories.mutants import MUTANTS


def cases(wanted: Namespace, root: Path) -> Iterator[Case]:
    count = wanted.count or (2_000 if wanted.mutants else 10_000)
    numbers = range(wanted.first, wanted.first + -(-count // wanted.size))
    how = Wanted(
        size=wanted.size,
        shortens=not (wanted.as_is or wanted.mutants),
        in_processes=not (wanted.in_process or wanted.mutants),
        found=wanted.found,
    )
    with BrokerProcess() as broker:
        batches = Batches(root, broker, how)
        if wanted.record:
            for path in kept_cases.scripts():
                yield Case(path.stem, partial(_recorded, path, root, broker))
        elif wanted.mutants:
            for name in MUTANTS:
                yield Case(name, partial(_found, name, batches, numbers), "mutants")
        else:
            for number in numbers:
                yield Case(f"batch {number}", partial(batches.tried, number))


def _found(name: str, batches: Batches, numbers: range) -> Tried:
    """Wrong is a defect that no history finds."""
    with MUTANTS[name]():
        for number in numbers:
            problems = batches.tried(number).problems
            if problems:
                return Tried(line=f"{name}: found by {problems[0][:200]}")
    return Tried(["NOT FOUND"])


def _recorded(path: Path, root: Path, broker: BrokerProcess) -> Tried:
    return Tried(kept_cases.record(path, root / path.stem, broker), line=path.stem)


OPTIONS: Options = {
    "--count": {"type": int, "help": "of histories: 10,000, or 2,000 of each mutant"},
    "--first": {"type": int, "default": 0, "help": "number of the first batch"},
    "--size": {"type": int, "default": BATCH, "help": "histories in a batch"},
    "--found": {"type": Path, "help": "directory for what went wrong"},
    "--as-is": {"action": "store_true", "help": "do not make it short"},
    "--in-process": {"action": "store_true", "help": "all runs are in this process"},
    "--mutants": {"action": "store_true", "help": "put defects back, and find them"},
    "--record": {"action": "store_true", "help": "play the kept cases again"},
}
CAMPAIGN = Campaign(
    "tests.histories",
    __doc__,
    cases,
    options=OPTIONS,
    in_memory=True,
    jobs=os.cpu_count() or 1,
)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
