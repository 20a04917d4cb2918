"""python -m tests.bench.inspect_session REQUEST: inspections of one log, and dry runs, in turn.

The child process of `inspect_side`. REQUEST is a JSON object; each turn is answered with one on a
line of its own: processor time by stage. The first turn loads what is loaded once. Nothing is
copied: neither changes anything.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from cleaner_jobs.spark.java_cache import cache_dir
from cleaner_jobs.spark.spark_session import end_spark, start_spark
from compactor import api
from compactor.host.java import use_java
from tests.bench.process_tree import cpu_seconds
from tests.bench.results import ALL
from tests.bench.workloads import NOW_MS, TOPIC_CONFIG

RULES = api.Rules(settings=TOPIC_CONFIG, include=".*", as_of=NOW_MS, any_clock=True)


@dataclass(frozen=True, slots=True)
class Request:
    log_dir: str
    scratch: str
    master: str
    turns: int


def main() -> None:
    wanted = Request(**json.loads(sys.argv[1]))
    use_java(os.environ, cache_dir(os.environ))
    work_dir = str(Path(wanted.scratch) / "work")
    context = start_spark(wanted.master, "log-compactor", work_dir)
    session = SparkSession(context)
    looking = api.InspectOptions(work_dir=work_dir, session=session)
    running = api.RunOptions(work_dir=work_dir, session=session, dry_run=True)

    def inspect(note: api.OnProgress) -> None:
        [log] = api.inspect(wanted.log_dir, (), RULES, looking, note).logs
        if log.problem is not None:
            raise SystemExit(log.problem)

    def run(note: api.OnProgress) -> None:
        [log] = api.run([wanted.log_dir], RULES, running, note).logs
        if log.status is not api.LogStatus.WOULD_CLEAN:
            raise SystemExit(log.reason)

    try:
        for _ in range(wanted.turns):
            answer = {f"inspect: {stage}": used for stage, used in by_stage(inspect).items()}
            answer |= {f"run: {stage}": used for stage, used in by_stage(run).items()}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    finally:
        end_spark(context)


def by_stage(call: Callable[[api.OnProgress], None]) -> dict[str, float]:
    """Seconds of processor time of all processes, from the start of a stage to that of the next."""
    marks: list[tuple[str, float]] = []

    def note(progress: api.Progress) -> None:
        if not marks or marks[-1][0] != progress.stage:
            marks.append((progress.stage, cpu_seconds(os.getpid())[ALL]))

    call(note)
    ends = [*(used for _, used in marks[1:]), cpu_seconds(os.getpid())[ALL]]
    return {stage: end - used for (stage, used), end in zip(marks, ends, strict=True)}


if __name__ == "__main__":
    main()
