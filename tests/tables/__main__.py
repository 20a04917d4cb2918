"""`python -m tests.tables`: random logs as tables, in every reader that is installed.

A case is a directory of logs, wrong where a reader raises, or finds what `dump` does not show.
"""

import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from tests.campaign import Campaign, Case, Options, Tried
from tests.tables.campaign import ZONES, problems, time_zone
from tests.tables.readers import readers
from tests.tables.spark_reader import spark_session

AT_ONCE = 100  # logs of a directory


def cases(wanted: Namespace, root: Path) -> Iterator[Case]:
    with nullcontext() if wanted.without_spark else spark_session() as session:
        end = wanted.first_log + wanted.logs
        for number, first in enumerate(range(wanted.first_log, end, AT_ONCE)):
            zone, count = ZONES[number % len(ZONES)], min(AT_ONCE, end - first)
            name = f"logs {first} to {first + count - 1}, {zone}"
            yield Case(name, partial(_tried, root, first, count, (zone, session)))


def _tried(root: Path, first: int, count: int, place: tuple[str, SparkSession | None]) -> Tried:
    zone, session = place
    names = [*readers(), *([] if session is None else ["Spark"])]
    with time_zone(zone), tempfile.TemporaryDirectory(dir=root) as own:
        found = problems(Path(own), first, count, session)
    return Tried(found, {f"logs read by {name}": count for name in names}, cases=count)


OPTIONS: Options = {
    "--logs": {"type": int, "default": 500},
    "--first-log": {"type": int, "default": 1, "help": "seed of the first log"},
    "--without-spark": {"action": "store_true"},
}
CAMPAIGN = Campaign("tests.tables", __doc__, cases, options=OPTIONS)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
