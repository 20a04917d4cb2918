"""`python -m tests.sequences`: does `verify --against` tell a loss from what was to go?

Kafka's log manager writes logs, 25 to a directory, and they are copied. Then random commands of
ours (run, killed runs, recover, roll, append, delete-records, undo, copies) and Kafka's own cleaner
and retention change them. With all reports and the settings given, `verify --against` must find
nothing; then a loss is planted in each log, and each must be found, with everything given and with
nothing. Every fifth batch also truncates.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.campaign import Campaign, Case
from tests.histories.broker_process import BrokerProcess
from tests.sequences.campaign import BATCH, play


def cases(wanted: Namespace, root: Path) -> Iterator[Case]:
    with BrokerProcess() as broker:
        for number in range(wanted.first, wanted.first + -(-wanted.count // BATCH)):
            yield Case(f"batch {number}", partial(play, number, root, broker))


OPTIONS = {
    "--count": {"type": int, "default": 1000},
    "--first": {"type": int, "default": 0, "help": "number of the first batch"},
}
CAMPAIGN = Campaign("tests.sequences", __doc__, cases, options=OPTIONS, in_memory=True)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
