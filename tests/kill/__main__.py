"""`python -m tests.kill`: runs killed with SIGKILL at random moments; none may lose a record.

Seeds are fresh in each call unless given; one that fails is printed, and told again by --seed.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from cleaner_jobs.spark.class_archive import cache_dir
from cleaner_jobs.spark.spark_session import end_spark, start_spark
from compactor.host.java import use_java
from tests.cluster.standalone import standalone_cluster
from tests.kill.kills import Kill, Range

SEEDS = 2**31


def main() -> int:
    """Kill, check, count; 1 if anything did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.kill", description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, action="append")
    wanted = parser.parse_args()
    seeds = wanted.seed or random.sample(range(SEEDS), wanted.count)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the cluster is stopped
    with killing_range() as field:
        kills = []
        for number, seed in enumerate(seeds, start=1):
            kills.append(field.kill_one(seed))
            _tell(f"{number} of {len(seeds)}: {_line(kills[-1])}")
    lost = [kill for kill in kills if kill.problems]
    _tell(_table(kills))
    _tell(f"{len(kills)} kills, {len(lost)} lost")
    return 1 if lost else 0


@contextmanager
def killing_range() -> Iterator[Range]:
    """Logs, a cluster, and a Spark session for the runs that follow a kill."""
    with tempfile.TemporaryDirectory(prefix="killing-") as root, local_session(root) as session:
        (Path(root) / "cluster").mkdir()
        with standalone_cluster(Path(root) / "cluster") as cluster:
            field = Range(Path(root), session, with_kafka=True, cluster=cluster)
            field.prepare()
            yield field


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


def _line(kill: Kill) -> str:
    where = f"{kill.target} in {kill.phase}{' on the cluster' if kill.on_cluster else ''}"
    where += f", {kill.swapped_logs} logs changed by then"
    return f"seed {kill.seed}: {where}" + "".join(f"\n    {p}" for p in kill.problems[:20])


def _table(kills: list[Kill]) -> str:
    phases = Counter(kill.phase for kill in kills)
    targets = Counter(kill.target for kill in kills)
    fell = ", ".join(f"{count} in {phase}" for phase, count in phases.most_common())
    hit = ", ".join(f"{count} {target}" for target, count in targets.most_common())
    cluster = sum(kill.on_cluster for kill in kills)
    between = sum(bool(kill.swapped_logs) for kill in kills)
    where = f"{cluster} on the cluster, the others in local mode"
    return f"fell {fell}\nhit {hit}; {where}\n{between} when something had been swapped in"


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
