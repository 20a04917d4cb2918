"""Starts a session as a run does, and prints what a test wants to know of it as one JSON line.

python -m tests.cleaner_jobs.spark.spark_probe MASTER WORK_DIR     (or by spark-submit)
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import psutil

from cleaner_jobs.spark.environment import SparkStartError
from cleaner_jobs.spark.spark_session import end_spark, start_spark
from cleaner_jobs.spark.task_job import one_a_task
from storage.errors import LogCompactionError

ASKED = ("spark.master", "spark.ui.enabled", "spark.python.worker.reuse", "spark.app.name")
HEAVY = ("numba", "pandas", "pyarrow", "pyspark.testing")


def _facts_of_worker(_: int) -> Iterator[tuple[str, str]]:
    yield "daemon", " ".join(psutil.Process(os.getppid()).cmdline())
    yield "python", sys.executable
    yield "numpy", str("numpy" in sys.modules)


def main(master: str | None, work_dir: str) -> None:
    spark = start_spark(master, "probe", work_dir)
    with suppress(SparkStartError):
        start_spark(master, "another", work_dir)
        raise AssertionError("there is one already")
    worker = dict(one_a_task(spark, 1, _facts_of_worker))
    here = psutil.Process()
    family = [here, *here.children(recursive=True)]
    listening = {
        connection.laddr.ip.removeprefix("::ffff:")
        for process in family
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
    sockets = sum(path.is_socket() for path in Path(work_dir).iterdir())
    conf = spark.getConf()
    told: dict[str, Any] = {name: conf.get(name) for name in ASKED}
    ours = [process.cmdline() for process in here.children() if "java" in process.name()]
    told["java"] = " ".join(chain.from_iterable(ours))  # none under spark-submit
    end_spark(spark)
    _, alive = psutil.wait_procs(family[1:], timeout=10)
    told["driver loads"] = [name for name in HEAVY if name in sys.modules]
    told |= {"worker": worker, "listening": sorted(listening), "sockets": sockets}
    told["alive"] = len(alive)
    print(json.dumps(told))  # noqa: T201


if __name__ == "__main__":
    try:
        main(sys.argv[1] if sys.argv[1] != "-" else None, sys.argv[2])
    except LogCompactionError as error:
        sys.exit(f"{type(error).__name__}: {error}")
