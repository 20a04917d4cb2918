"""`python -m tests.obstacles [--count 500] [--seed N]`: what doctor, plan and run say of a run.

Each drawing puts one or two random obstacles in the way of a run by a user who may not do
everything, asks `doctor` and `plan` how it would end, and then lets it run. All three have to name
the same exit code and reason code. A drawing that fails is told again by --seed.
"""

import argparse
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from compactor.host.output import print_line
from tests.obstacles.loaded import load_all
from tests.obstacles.verdicts import Verdict, verdict_of


def main() -> int:
    """Draw, ask, run, compare; 1 if anything did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.obstacles", description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first-seed", type=int)
    parser.add_argument("--seed", type=int, action="append")
    wanted = parser.parse_args()
    first = random.randrange(2**31) if wanted.first_seed is None else wanted.first_seed
    seeds = wanted.seed or range(first, first + wanted.count)
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory(prefix="obstacles-") as name:
        root = Path(name)
        root.chmod(0o755)
        load_all(root / "loaded")
        for seed in seeds:
            place = root / str(seed)
            place.mkdir()
            place.chmod(0o755)
            verdicts.append(verdict_of(seed, place))
            for problem in verdicts[-1].problems:
                print_line(f"seed {seed}: {' and '.join(verdicts[-1].obstacles)}: {problem}")
    endings = Counter(verdict.endings["run"] for verdict in verdicts)
    for (code, reason), count in endings.most_common():
        print_line(f"{count:4} {int(code)} {reason}")
    wrong = sum(bool(verdict.problems) for verdict in verdicts)
    print_line(f"{len(verdicts)} drawings from seed {first}, {wrong} not equal or not true")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
