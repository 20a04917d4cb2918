"""`python -m tests.histories`: random histories of logs, under brokers and under us.

Each is the same whenever it is told by the same number, so that a campaign can be gone on with, or
a batch be run again, by --first. What goes wrong is made as short as it gets and printed, and with
--found written to a file that can be kept in tests/histories/cases.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.histories import script
from tests.histories.broker_process import BrokerProcess
from tests.histories.campaign import Campaign, Violation
from tests.histories.generator import BATCH
from tests.oracle import jars

SHARED_MEMORY = "/dev/shm"


def main() -> int:
    """1 if anything did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="of histories")
    parser.add_argument("--first", type=int, default=0, help="number of the first batch")
    parser.add_argument("--size", type=int, default=BATCH, help="histories in a batch")
    parser.add_argument("--found", type=Path, help="directory for what went wrong")
    parser.add_argument("--as-is", action="store_true", help="do not make it short")
    wanted = parser.parse_args()
    shared = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="histories-", dir=shared) as root,
        BrokerProcess() as broker,
    ):
        campaign = Campaign(Path(root), broker, _tell)
        for number in range(wanted.first, wanted.first + -(-wanted.count // wanted.size)):
            before = len(campaign.result.violations)
            campaign.try_batch(number, wanted.size, shortens=not wanted.as_is)
            for violation in campaign.result.violations[before:]:
                _keep(violation, wanted.found)
    result = campaign.result
    _tell(", ".join(f"{what} {count}" for what, count in sorted(result.counts.items())))
    _tell(
        f"{result.histories} histories, {result.steps} steps, "
        f"{result.seconds / result.histories:.3f} s of processor each, "
        f"{len(result.violations)} violations, in {time.monotonic() - began:.0f} s"
    )
    return 1 if result.violations else 0


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
