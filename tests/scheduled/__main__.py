"""`python -m tests.scheduled`: runs that their scheduler kills, and the next ones.

None loses a record.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from tests.campaign import Campaign, Case, Tried, of_seeds
from tests.scheduled.kills import Range


def cases(wanted: Namespace, root: Path) -> Iterator[Case]:
    field = Range(root)
    field.prepare()

    def attempt(seed: int) -> Tried:
        kill = field.kill_one(seed)
        what = f"{kill.signal.name}{' and a reboot' * kill.rebooted} in {kill.moment}"
        what += f" on {kill.engine}"
        line = f"seed {seed}: {what}, ended in {kill.ending_seconds:.1f} s, "
        line += f"{kill.changed_logs} logs changed by then"
        return Tried(kill.problems, {what: 1}, line)

    return of_seeds(wanted, attempt)


CAMPAIGN = Campaign("tests.scheduled", __doc__, cases, count=50)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
