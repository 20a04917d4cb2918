"""`python -m tests.scheduled`: runs that their scheduler kills, and the next ones; none loses any.

Seeds are fresh in each call unless given; one that fails is printed, and told again by --seed.
"""

import argparse
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from compactor.host.output import print_line
from tests.scheduled.kills import Kill, Range


def main() -> int:
    """Kill, run again, compare, count; 1 if anything did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.scheduled", description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, action="append")
    wanted = parser.parse_args()
    seeds = wanted.seed or random.sample(range(2**31), wanted.count)
    kills = []
    with tempfile.TemporaryDirectory(prefix="scheduled-") as root:
        field = Range(Path(root))
        field.prepare()
        for number, seed in enumerate(seeds, start=1):
            kills.append(field.kill_one(seed))
            print_line(f"{number} of {len(seeds)}: {_line(kills[-1])}")
    lost = [kill for kill in kills if kill.problems]
    for name, count in Counter(map(_what, kills)).most_common():
        print_line(f"{count:4} {name}")
    slowest = max((k.ending_seconds for k in kills), default=0.0)
    print_line(f"{len(kills)} kills, {len(lost)} lost; the slowest ending took {slowest:.1f} s")
    return 1 if lost else 0


def _what(kill: Kill) -> str:
    return f"{kill.signal.name}{' and a reboot' * kill.rebooted} in {kill.moment}"


def _line(kill: Kill) -> str:
    where = f"{_what(kill)}, ended in {kill.ending_seconds:.1f} s"
    where += f", {kill.changed_logs} logs changed by then"
    return f"seed {kill.seed}: {where}" + "".join(f"\n    {p}" for p in kill.problems[:20])


if __name__ == "__main__":
    sys.exit(main())
