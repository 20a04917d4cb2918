"""`python -m tests.kill`: runs killed with SIGKILL at random moments; none may lose a record."""

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from cleaner_jobs.spark.spark_session import end_spark, start_spark
from cleaner_jobs.user_cache import cache_dir
from compactor.host.java import use_java
from tests.campaign import Campaign, Case, Tried, of_seeds
from tests.cluster.standalone import standalone_cluster
from tests.kill.kills import Range


def cases(wanted: Namespace, root: Path) -> Iterator[Case]:
    """Use logs, a cluster, and a Spark session for the runs that follow a kill."""
    (root / "cluster").mkdir()
    with local_session(str(root)) as session, standalone_cluster(root / "cluster") as cluster:
        field = Range(root, session, with_kafka=True, cluster=cluster)
        field.prepare()
        yield from of_seeds(wanted, lambda seed: _tried(field, seed))


def _tried(field: Range, seed: int) -> Tried:
    kill = field.kill_one(seed)
    counts = {
        f"fell in {kill.phase}": 1,
        f"hit {kill.target}": 1,
        str(kill.place): 1,
        "when something had been swapped in": int(bool(kill.swapped_logs)),
    }
    where = f"{kill.target} in {kill.phase} {kill.place}"
    line = f"seed {seed}: {where}, {kill.swapped_logs} logs changed by then"
    return Tried(kill.problems, counts, line)


@contextmanager
def local_session(work_dir: str) -> Iterator[Any]:
    """Start a Spark session, or give the one that other tests of this process share."""
    shared = SparkSession.getActiveSession()
    if shared is not None:
        yield shared
        return
    use_java(os.environ, cache_dir(os.environ))
    context = start_spark("local[2]", "kill", work_dir)
    try:
        yield SparkSession(context)
    finally:
        end_spark(context)


CAMPAIGN = Campaign("tests.kill", __doc__, cases, count=200)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
