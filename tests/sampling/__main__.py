"""python -m tests.sampling: how often what a run would free of a random log is within the interval
that a sample gives.

A sample is of as many blocks as a real one, each a 64th as large, of logs that are as much smaller.
What would go is what a dry run over all of the log counts. Logs that fit their sample are known
exactly, and do not count.
"""

import sys
import tempfile
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from unittest import mock

import numpy as np

from compactor import api
from compactor.api import RunOptions
from compactor.cleaning import sampling
from tests.campaign import Campaign, Case, Report, Tried, of_seeds
from tests.sampling.random_logs import RandomLog, random_log

SMALLER = 64  # than a real sample and its blocks
LEAST_WITHIN, MOST_UNKNOWN = 0.95, 0.10
MIB = 1 << 20
EXACT, WITHIN, MISSED, UNKNOWN = "that fit their sample", "within", "missed", "without an interval"


def cases(wanted: Namespace, root: Path) -> Iterator[Case]:
    return of_seeds(wanted, partial(_tried, root, wanted.mib * MIB))


def _tried(root: Path, most_bytes: int, seed: int) -> Tried:
    """Try one random log of a quarter of so many bytes at least, before they are compressed."""
    wanted = int(most_bytes / 2 ** np.random.default_rng(seed).uniform(0, 2))
    sample_bytes = sampling.SAMPLE_BYTES // SMALLER
    with tempfile.TemporaryDirectory(dir=root) as own:
        made = random_log(Path(own, "logs"), seed, wanted)
        with mock.patch.object(sampling, "BLOCK_BYTES", sampling.BLOCK_BYTES // SMALLER):
            planned = api.plan([str(made.log_dir)], made.rules, sample_bytes=sample_bytes)
        actual = _actual(made)
    assert planned.estimates is not None and planned.round_plan.logs, planned
    [log] = planned.round_plan.logs
    estimate = planned.estimates[log.path]
    least, most = estimate.least, estimate.most
    counts = Counter[str]()
    if least is None or most is None:
        verdict, said = UNKNOWN, str(estimate.problem)
    else:
        said = f"{least:.3f} to {most:.3f}"
        within = WITHIN if least <= actual <= most else MISSED
        verdict = EXACT if estimate.is_exact else within
        if verdict != EXACT:
            counts[f"width {1000 * (most - least):.0f}"] = 1
    counts[f"logs {verdict}"] = 1
    counts[f"{verdict}: {made.kind.split(',')[0]}"] = 1
    facts = f"{estimate.read_bytes / log.log_bytes:.2f} read, {actual:.3f} goes"
    return Tried((), counts, f"seed {seed}: {made.kind}: {facts}; {said}: {verdict}")


def _actual(made: RandomLog) -> float:
    """Return the share that a dry run over all of it frees.

    It is 0 where the log would grow, as one may that is compressed again.
    """
    options = RunOptions(dry_run=True, in_process=True, drop_null_keys=True)
    [report] = api.run([str(made.log_dir)], made.rules, options).logs
    assert report.bytes_before, report
    return max(0.0, 1 - report.bytes_after / report.bytes_before)


def verdict(_wanted: Namespace, report: Report) -> list[str]:
    """Hold all samples together to what they must reach; put how good they were in one line."""
    counts = report.counts
    widths = Counter({int(key[6:]): counts.pop(key) for key in list(counts) if key[:6] == "width "})
    within, missed, unknown = (counts[f"logs {name}"] for name in (WITHIN, MISSED, UNKNOWN))
    known = within + missed
    share, silence = within / max(1, known), unknown / max(1, known + unknown)
    wide = median(widths.elements()) / 10 if widths else 100
    counts[
        f"intervals: {share:.1%} hold what goes, {wide:.1f} points wide in the median, "
        f"{silence:.1%} of logs without one"
    ] = known
    return [
        *([f"less than {LEAST_WITHIN:.0%} are within"] if share < LEAST_WITHIN and known else []),
        *([f"more than {MOST_UNKNOWN:.0%} have none"] if silence > MOST_UNKNOWN else []),
    ]


CAMPAIGN = Campaign(
    "tests.sampling",
    __doc__,
    cases,
    count=200,
    options={"--mib": {"type": int, "default": 32, "help": "of the largest log, not compressed"}},
    verdict=verdict,
)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
