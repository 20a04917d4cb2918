"""`python -m tests.tables`: random logs as tables, in every reader that is installed."""

import argparse
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

from pyspark.sql import SparkSession

from compactor.host.output import print_line
from tests.tables.campaign import ZONES, problems, time_zone
from tests.tables.readers import readers
from tests.tables.spark_reader import spark_session

AT_ONCE = 100  # logs of a directory


def _problems(session: SparkSession | None, first_seed: int, count: int) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="compactor-tables-") as name:
        found = problems(Path(name), first_seed, count, session)
    for line in found:
        print_line(line)
    return found


def main() -> int:
    """1 where a reader raises, or finds what `dump` does not show."""
    parser = argparse.ArgumentParser(prog="python -m tests.tables")
    parser.add_argument("--logs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1, help="of the first log")
    parser.add_argument("--without-spark", action="store_true")
    options = parser.parse_args()
    began = time.monotonic()
    found = []
    with nullcontext() if options.without_spark else spark_session() as session:
        end = options.seed + options.logs
        for number, first in enumerate(range(options.seed, end, AT_ONCE)):
            with time_zone(ZONES[number % len(ZONES)]):
                found += _problems(session, first, min(AT_ONCE, end - first))
    names = [*readers(), *([] if options.without_spark else ["Spark"])]
    took = time.monotonic() - began
    print_line(f"{options.logs} logs in {', '.join(names)}: {len(found)} differ; {took:.0f} s")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
