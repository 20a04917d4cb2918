"""Starts a session as a run does, and prints what a test wants to know of it as one JSON line.

python -m tests.cleaner_jobs.spark.spark_probe MASTER WORK_DIR     (or by spark-submit)
"""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import psutil
import pyarrow as pa

from cleaner_jobs.spark.spark_session import build_session, end_session
from storage.errors import LogCompactionError

ASKED = ("spark.master", "spark.ui.enabled", "spark.python.worker.reuse", "spark.app.name")


def _facts_of_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        daemon = " ".join(psutil.Process(os.getppid()).cmdline())
        facts = [daemon, sys.executable, str("numpy" in sys.modules)]
        yield pa.RecordBatch.from_arrays([pa.array(facts)], ["fact"])


def main(master: str | None, work_dir: str) -> None:
    session = build_session(master, "probe", work_dir)
    assert build_session(master, "another", work_dir).sparkContext is session.sparkContext
    worker = session.range(0, 1, 1, 1).mapInArrow(_facts_of_worker, "fact string").toArrow()
    here = psutil.Process()
    family = [here, *here.children(recursive=True)]
    listening = {
        connection.laddr.ip.removeprefix("::ffff:")
        for process in family
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
    conf = session.sparkContext.getConf()
    told: dict[str, Any] = {name: conf.get(name) for name in ASKED}
    end_session(session)
    _, alive = psutil.wait_procs(family[1:], timeout=10)
    facts = dict(zip(("daemon", "python", "numpy"), worker.column("fact").to_pylist(), strict=True))
    told |= {"worker": facts, "listening": sorted(listening), "alive": len(alive)}
    print(json.dumps(told))  # noqa: T201


if __name__ == "__main__":
    try:
        main(sys.argv[1] if sys.argv[1] != "-" else None, sys.argv[2])
    except LogCompactionError as error:
        sys.exit(f"{type(error).__name__}: {error}")
