"""python -m tests.broker.start_conditions [--count 300] [--seed N]: damaged directories, started.

Prints each case in which we say something else than a broker does, or in which a command recommends
a start that fails or loses a log; ends with 1 where there is one. A seed is drawn unless given.
"""

import argparse
import collections
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.broker.start_campaign import Campaign, drawn, original

COUNT = 300


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.broker.start_conditions")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    parser.add_argument("--only", type=int, help="the number of one case")
    asked = parser.parse_args()
    began = time.monotonic()
    _say(f"seed {asked.seed}")
    cases = drawn(asked.count, asked.seed)
    if asked.only is not None:
        cases = [case for case in cases if case.number == asked.only]
    with tempfile.TemporaryDirectory() as scratch:
        campaign = Campaign(original(Path(scratch, "original")), Path(scratch, "cases"), _say)
        verdicts = campaign.run(cases)
    wrong = [verdict for verdict in verdicts if not verdict.is_right]
    for verdict in wrong:
        _say(f"WRONG: {verdict}")
    seen = collections.Counter(str(verdict.seen) for verdict in verdicts)
    _say(", ".join(f"{count} {outcome}" for outcome, count in seen.most_common()))
    _say(
        f"{len(verdicts)} damaged directories, {campaign.starts} starts, {len(wrong)} wrong, "
        f"{time.monotonic() - began:.0f} s"
    )
    return int(bool(wrong))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
