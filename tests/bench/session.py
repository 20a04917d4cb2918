"""python -m tests.bench.session REQUEST: turns over one log with one engine that stays open.

REQUEST is a JSON object; each turn is answered with one on a line of its own. What is timed of a
round is all that a scheduler that keeps its session would do: lock, recover, survey, plan, the
jobs, swap, checkpoint. An inspection is in turn with a dry run; nothing is copied for them, since
neither changes anything. The first turn loads what is loaded once.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cleaner_jobs.user_cache import cache_dir
from compactor import api
from compactor.host.java import use_java
from compactor.host.progress import START_STAGE
from compactor.outcome.json_values import to_json
from storage.files.disk_hints import wait_until_freed
from tests.bench.process_tree import cpu_seconds
from tests.bench.results import ALL
from tests.bench.scratch import Scratch, fresh_copy
from tests.bench.timing import Answers, module, run_session
from tests.bench.workloads import NOW_MS, TOPIC_CONFIG

RULES = api.Rules(settings=TOPIC_CONFIG, include=".*", as_of=NOW_MS, any_clock=True)


@dataclass(frozen=True, slots=True)
class Request:
    log_dir: str
    scratch: str
    master: str | None  # of Spark; None: worker processes of this host
    turns: int
    what: str  # CLEAN or INSPECT

    def run(self, watched_after: int) -> Answers:
        """Have it carried out by a process of its own."""
        argv = module("tests.bench.session", json.dumps(asdict(self)))
        return run_session(argv, self.turns, watched_after)


def clean(wanted: Request, options: dict[str, Any]) -> dict[str, Any]:
    """Clean a fresh copy."""
    planned: list[float] = []

    def note(progress: api.Progress) -> None:
        if progress.stage == START_STAGE:
            planned.append(time.monotonic())

    with fresh_copy(Scratch(Path(wanted.scratch)), Path(wanted.log_dir)) as copy:
        used_before, began = cpu_seconds(os.getpid()), time.monotonic()
        report = api.run([str(copy)], RULES, api.RunOptions(**options), note)
        seconds = time.monotonic() - began
        wait_until_freed()  # nobody waits for it, and yet it takes the processor
        used = cpu_seconds(os.getpid())
    return {
        "seconds": seconds,
        "cpu_seconds": {kind: used[kind] - used_before[kind] for kind in used},
        "phases": {"plan": planned[0] - began} | {p.name: p.seconds for p in report.phases},
        "logs": to_json(report)["logs"],
    }


def inspect(wanted: Request, options: dict[str, Any]) -> dict[str, float]:
    """Inspect, then run dry; return processor seconds by stage."""

    def look(note: api.OnProgress) -> None:
        [log] = api.inspect(wanted.log_dir, (), RULES, api.InspectOptions(**options), note).logs
        if log.problem is not None:
            raise SystemExit(log.problem)

    def run(note: api.OnProgress) -> None:
        dry = api.RunOptions(**options, dry_run=True)
        [log] = api.run([wanted.log_dir], RULES, dry, note).logs
        if log.status is not api.LogStatus.WOULD_CLEAN:
            raise SystemExit(log.reason)

    return {
        f"{name}: {stage}": used
        for name, call in (("inspect", look), ("run", run))
        for stage, used in _by_stage(call).items()
    }


CLEAN, INSPECT = "clean", "inspect"
_WAYS: dict[str, Callable[[Request, dict[str, Any]], dict[str, Any]]] = {
    CLEAN: clean,
    INSPECT: inspect,
}


def _by_stage(call: Callable[[api.OnProgress], None]) -> dict[str, float]:
    """Return what all processes used from the start of a stage to that of the next."""
    marks: list[tuple[str, float]] = []

    def note(progress: api.Progress) -> None:
        if not marks or marks[-1][0] != progress.stage:
            marks.append((progress.stage, cpu_seconds(os.getpid())[ALL]))

    call(note)
    ends = [*(used for _, used in marks[1:]), cpu_seconds(os.getpid())[ALL]]
    return {stage: end - used for (stage, used), end in zip(marks, ends, strict=True)}


def main() -> None:
    wanted = Request(**json.loads(sys.argv[1]))
    work_dir = str(Scratch(Path(wanted.scratch)).work)
    with _engine(wanted.master, work_dir) as engine:
        options = {"work_dir": work_dir, **engine}
        for _ in range(wanted.turns):
            sys.stdout.write(json.dumps(_WAYS[wanted.what](wanted, options)) + "\n")
            sys.stdout.flush()


@contextmanager
def _engine(master: str | None, work_dir: str) -> Iterator[dict[str, Any]]:
    """Open it; return the option that passes it to a call."""
    if master is None:
        with api.Workers() as workers:
            yield {"workers": workers}
        return
    from pyspark.sql import SparkSession

    from cleaner_jobs.spark.environment import spark_home
    from cleaner_jobs.spark.spark_session import end_spark, start_spark

    use_java(os.environ, cache_dir(os.environ))
    if master.startswith("local-cluster"):  # its executors work in the folder of Spark
        os.environ["SPARK_HOME"] = str(_linked(Path(spark_home(os.environ)), Path(work_dir)))
    context = start_spark(master, "log-compactor", work_dir)
    try:
        yield {"session": SparkSession(context)}
    finally:
        end_spark(context)


def _linked(home: Path, work_dir: Path) -> Path:
    """Return a folder that is gone with the work directory, and has what Spark's own has."""
    folder = work_dir / "spark"
    folder.mkdir(exist_ok=True)
    for name in ("bin", "jars", "python"):
        with suppress(FileExistsError):
            (folder / name).symlink_to(home / name)
    return folder


if __name__ == "__main__":
    main()
