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
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.histories import kept_cases, script
from tests.histories.broker_process import BrokerProcess
from tests.histories.campaign import Campaign, Violation
from tests.histories.generator import BATCH
from tests.histories.mutants import MUTANTS
from tests.oracle import jars

SHARED_MEMORY = "/dev/shm"


def main() -> int:
    """1 if anything did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("--count", type=int, help="of histories: 10,000, or 2,000 of each mutant")
    parser.add_argument("--first", type=int, default=0, help="number of the first batch")
    parser.add_argument("--size", type=int, default=BATCH, help="histories in a batch")
    parser.add_argument("--found", type=Path, help="directory for what went wrong")
    parser.add_argument("--as-is", action="store_true", help="do not make it short")
    parser.add_argument("--mutants", action="store_true", help="put defects back, and find them")
    parser.add_argument("--record", action="store_true", help="tell the kept cases again")
    wanted = parser.parse_args()
    count = wanted.count or (2_000 if wanted.mutants else 10_000)
    batches = range(wanted.first, wanted.first + -(-count // wanted.size))
    if wanted.mutants:
        return _find_mutants(batches, wanted.size)
    if wanted.record:
        return _record()
    return _campaign(batches, wanted)


def _campaign(batches: range, wanted: argparse.Namespace) -> int:
    began = time.monotonic()
    with _started() as (root, broker):
        campaign = Campaign(root, broker, _tell)
        for number in batches:
            before = len(campaign.result.violations)
            campaign.try_batch(number, wanted.size, shortens=not wanted.as_is)
            for violation in campaign.result.violations[before:]:
                _keep(violation, wanted.found)
    result = campaign.result
    for what, count in sorted(result.counts.items()):
        _tell(f"{count:8,} {what}")
    _tell(
        f"{result.histories:,} histories, {result.steps:,} steps, "
        f"{result.seconds / result.histories:.3f} s of processor each, "
        f"{len(result.violations)} violations, in {time.monotonic() - began:.0f} s"
    )
    return 1 if result.violations else 0


def _find_mutants(batches: range, size: int) -> int:
    """1 if one of them was not found."""
    missed = 0
    for name, mutant in MUTANTS.items():
        with _started() as (root, broker), mutant():
            campaign = Campaign(root, broker, lambda _: None)
            for number in batches:
                campaign.try_batch(number, size, shortens=False, on_spark=False)
                if campaign.result.violations:
                    break
        result = campaign.result
        missed += not result.violations
        first = next(iter(result.violations), None)
        told = f"found by {first.name}: {first.problem[:200]}" if first else "NOT FOUND"
        _tell(f"{name}: within {result.histories:,} histories {told}")
    return 1 if missed else 0


def _record() -> int:
    wrong = 0
    with _started() as (root, broker):
        for path in kept_cases.scripts():
            problems = kept_cases.record(path, root / path.stem, broker)
            wrong += bool(problems)
            _tell(f"{path.stem}: {'; '.join(problems) or 'recorded'}")
    return 1 if wrong else 0


@contextmanager
def _started() -> Iterator[tuple[Path, BrokerProcess]]:
    """A directory, in memory where there is room for that, and a broker's Java."""
    shared = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="histories-", dir=shared) as root,
        BrokerProcess() as broker,
    ):
        yield Path(root), broker


def _keep(violation: Violation, directory: Path | None) -> None:
    if directory is not None and violation.script is not None:
        directory.mkdir(parents=True, exist_ok=True)
        text = f"# {violation.problem}\n{script.to_text(violation.script)}"
        (directory / f"{violation.name}.jsonl").write_text(text)


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except jars.OracleUnavailableError as unavailable:
        sys.exit(str(unavailable))
