"""`python -m tests.bounds`: every kernel, between fences, over logs that changed after the scan.

Then once more with numba's own checks of every index, compiled for that alone.
"""

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.bounds import campaign
from tests.bounds.checked_indexes import run_with_indexes_checked
from tests.campaign import Campaign, Case, Options, Tried

AT_ONCE = 5_000  # in a process


def cases(wanted: Namespace, _: Path) -> Iterator[Case]:
    if wanted.checked_cases:
        words = ["--cases", str(wanted.checked_cases), "--checked-cases", "0"]
        words += ["--seed", str(wanted.seed), *(["--made-only"] * wanted.made_only)]
        yield Case("with indexes checked", partial(_checked, words))
    end = wanted.seed + wanted.cases
    for first in range(wanted.seed, end, AT_ONCE):
        count = min(AT_ONCE, end - first)
        yield Case(f"from seed {first}", partial(_tried, first, count, not wanted.made_only))


def _tried(first: int, count: int, kafkas: bool) -> Tried:
    counted = campaign.run(first, count, kafkas)
    counts = Counter({f"{stage}: {end}": n for (stage, end), n in counted.endings.items()})
    counts.update({f"cases with the kernel {name}": count for name in counted.kernels})
    return Tried([f"seed {seed}: {told}" for seed, told in counted.faults], counts, cases=count)


def _checked(words: list[str]) -> Tried:
    code = run_with_indexes_checked("tests.bounds", words)
    return Tried([f"ended with {code}"] if code else [])


OPTIONS: Options = {
    "--cases": {"type": int, "default": 50_000},
    "--checked-cases": {"type": int, "default": 10_000},
    "--seed": {"type": int, "default": 0, "help": "of the first case"},
    "--made-only": {"action": "store_true", "help": "no logs that Kafka wrote"},
}
CAMPAIGN = Campaign("tests.bounds", __doc__, cases, options=OPTIONS)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
