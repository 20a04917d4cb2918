"""python -m tests.sampling [--logs 200] [--seed N] [--mib 32]: how often the share of a random log
that a run would free is within the interval that a sample gives.

A sample is of as many blocks as a real one, each a 64th as large, of logs that are as much smaller.
What would go is what a dry run over all of the log counts. Logs that fit their sample are known
exactly, and do not count.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import NamedTuple
from unittest import mock

import numpy as np

from compactor import api
from compactor.api import RunOptions
from compactor.cleaning import sampling
from compactor.planning.sample_estimate import Estimate
from tests.sampling.random_logs import RandomLog, random_log

SMALLER = 64  # than a real sample and its blocks
LEAST_WITHIN, MOST_UNTOLD = 0.95, 0.10
MIB = 1 << 20


class Outcome(NamedTuple):
    seed: int
    kind: str
    share: float  # of the log that was read
    actual: float
    estimate: Estimate

    @property
    def width(self) -> float | None:
        least, most = self.estimate.least, self.estimate.most
        return None if least is None or most is None else most - least

    @property
    def is_within(self) -> bool:
        least, most = self.estimate.least, self.estimate.most
        return least is not None and most is not None and least <= self.actual <= most


def outcome_of(seed: int, root: Path, most_bytes: int) -> Outcome:
    """Of one random log of a quarter of so many bytes at least, before they are compressed."""
    wanted = int(most_bytes / 2 ** np.random.default_rng(seed).uniform(0, 2))
    made = random_log(root, seed, wanted)
    sample_bytes = sampling.SAMPLE_BYTES // SMALLER
    with mock.patch.object(sampling, "BLOCK_BYTES", sampling.BLOCK_BYTES // SMALLER):
        planned = api.plan([str(made.log_dir)], made.rules, sample_bytes=sample_bytes)
    assert planned.estimates is not None and planned.round_plan.logs, planned
    [log] = planned.round_plan.logs
    estimate = planned.estimates[log.path]
    share = estimate.read_bytes / log.log_bytes
    return Outcome(seed, made.kind, share, _actual(made), estimate)


def _actual(made: RandomLog) -> float:
    """By a dry run over all of it; 0 where the log would grow: it is compressed anew."""
    options = RunOptions(dry_run=True, in_process=True, drop_null_keys=True)
    [report] = api.run([str(made.log_dir)], made.rules, options).logs
    assert report.bytes_before, report
    return max(0.0, 1 - report.bytes_after / report.bytes_before)


def told(found: list[Outcome]) -> str:
    """How good the samples were, by kind of log and all together."""
    exact = sum(outcome.estimate.is_exact for outcome in found)
    found = [outcome for outcome in found if not outcome.estimate.is_exact]
    widths = [outcome.width for outcome in found if outcome.width is not None]
    within, untold = sum(o.is_within for o in found), len(found) - len(widths)
    kinds = Counter(o.kind.split(",")[0] for o in found)
    missed = Counter(o.kind.split(",")[0] for o in found if o.width is not None and not o.is_within)
    silent = Counter(o.kind.split(",")[0] for o in found if o.width is None)
    lines = [
        f"{kind:14} {count:4} logs, {missed[kind]:3} missed, {silent[kind]:3} untold"
        for kind, count in kinds.items()
    ]
    shares = within / max(1, len(widths)), median(widths or [1]), untold / max(1, len(found))
    right, wide, silence = (f"{100 * share:.1f}" for share in shares)
    lines.append(
        f"{len(found)} logs, and {exact} that fit their sample: {right} % of those told are within "
        f"the interval, {wide} points wide in the median, {silence} % untold"
    )
    return "\n".join(lines)


def is_good(found: list[Outcome]) -> bool:
    """Whether they are as good as is asked for."""
    found = [outcome for outcome in found if not outcome.estimate.is_exact]
    numbers = [outcome for outcome in found if outcome.width is not None]
    within = sum(outcome.is_within for outcome in numbers)
    untold = len(found) - len(numbers)
    return within >= LEAST_WITHIN * len(numbers) and untold <= MOST_UNTOLD * len(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="of the first log")
    parser.add_argument("--mib", type=int, default=32, help="of the largest log, not compressed")
    wanted = parser.parse_args()
    began, found = time.monotonic(), []
    for seed in range(wanted.seed, wanted.seed + wanted.logs):
        with tempfile.TemporaryDirectory() as root:
            outcome = outcome_of(seed, Path(root) / "logs", wanted.mib * MIB)
        found.append(outcome)
        least, most = outcome.estimate.least, outcome.estimate.most
        said = outcome.estimate.problem or f"{least:.3f} to {most:.3f}"
        is_fine = outcome.is_within or least is None or outcome.estimate.is_exact
        verdict = "" if is_fine else " MISSED"
        facts = f"{outcome.share:.2f} read, {outcome.actual:.3f} goes"
        sys.stdout.write(f"seed {seed}: {outcome.kind}: {facts}; {said}{verdict}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{told(found)}\nin {time.monotonic() - began:.0f} s\n")
    return 0 if is_good(found) else 1


if __name__ == "__main__":
    sys.exit(main())
