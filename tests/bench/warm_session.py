"""python -m tests.bench.warm_session REQUEST: rounds over fresh copies of one log in one session.

The child process of `warm_side`. REQUEST is a JSON object; each round is answered with one on a
line of its own. What is timed is all that a round of a scheduler that keeps its session would do:
lock, recover, survey, plan, the jobs, swap, checkpoint.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from cleaner_jobs.spark.java_cache import cache_dir
from cleaner_jobs.spark.spark_session import end_spark, start_spark
from compactor import api
from compactor.host.java import use_java
from compactor.host.progress import START_STAGE
from compactor.views.report_json import report_document
from storage.files.disk_hints import wait_until_freed
from tests.bench.process_tree import cpu_seconds
from tests.bench.scratch import Scratch, fresh_copy
from tests.bench.workloads import NOW_MS, TOPIC_CONFIG


@dataclass(frozen=True, slots=True)
class Request:
    log_dir: str
    scratch: str
    master: str
    rounds: int


def main() -> None:
    wanted = Request(**json.loads(sys.argv[1]))
    use_java(os.environ, cache_dir(os.environ))
    work_dir = Path(wanted.scratch) / "work"
    context = start_spark(wanted.master, "log-compactor", str(work_dir))
    try:
        for answer in _rounds(wanted, str(work_dir), SparkSession(context)):
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    finally:
        end_spark(context)


def _rounds(wanted: Request, work_dir: str, session: SparkSession) -> Iterator[dict[str, Any]]:
    for _ in range(wanted.rounds):
        with fresh_copy(Scratch(Path(wanted.scratch)), Path(wanted.log_dir)) as copy:
            used_before, began = cpu_seconds(os.getpid()), time.monotonic()
            report, plan_seconds = _round(str(copy), work_dir, session)
            seconds = time.monotonic() - began
            wait_until_freed()  # nobody waits for it, and yet it takes the processor
            used = cpu_seconds(os.getpid())
        document = report_document(report)
        yield {
            "seconds": seconds,
            "cpu_seconds": {kind: used[kind] - used_before[kind] for kind in used},
            "phases": {"plan": plan_seconds} | {p.name: p.seconds for p in report.phases},
            "logs": document["logs"],
        }


def _round(log_dir: str, work_dir: str, session: SparkSession) -> tuple[api.CleaningReport, float]:
    """A round, and how many of its seconds went before the engine began."""
    began, planned = time.monotonic(), []

    def note(progress: api.Progress) -> None:
        if progress.stage == START_STAGE:
            planned.append(time.monotonic())

    rules = api.Rules(settings=TOPIC_CONFIG, include=".*", as_of=NOW_MS, any_clock=True)
    options = api.RunOptions(work_dir=work_dir, session=session)
    report = api.run([log_dir], rules, options, note)
    return report, planned[0] - began


if __name__ == "__main__":
    main()
