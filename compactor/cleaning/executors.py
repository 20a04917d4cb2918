"""Refuses a cluster on which an executor could not do its part, before it has done any of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cleaner_jobs.plan import LogPlan
from cleaner_jobs.spark.executor_problem import Lack
from cleaner_jobs.task_values import RoundSettings, Source
from compactor.errors import RefusedError
from compactor.planning.layout import sources_of
from compactor.reason_codes import ReasonCode

if TYPE_CHECKING:
    from pyspark import SparkContext

SHOWN_HOSTS = 3


def require_able_executors(
    spark: "SparkContext", logs: Sequence[LogPlan], facts: RoundSettings
) -> None:
    """Raise RefusedError, with host and cause, where one lacks Python, package or a directory."""
    from cleaner_jobs.spark.executor_check import executor_problems

    samples = _one_of_each_log_dir(logs)
    found = executor_problems(spark, facts.work_dir, samples, to_write=not facts.dry_run)
    if found:
        worst = min(found, key=lambda problem: list(Lack).index(problem.lack))
        problem = _LINES[worst.lack].format(problem=worst.problem, on=_on(worst.hosts))
        raise RefusedError(problem, ReasonCode.UNFIT_EXECUTOR)


_LINES = {
    Lack.PYTHON: (
        "{on}: {problem}; every executor needs this package, under the Python that PYSPARK_PYTHON "
        "names"
    ),
    Lack.WORK_DIR: (
        "{problem}: is not the same directory on every executor ({on}); --work-dir has to name one "
        "that all of them share"
    ),
    Lack.LOG_DIR: (
        "{on}: {problem}; every executor has to reach the log directories, to read and to write, "
        "under the paths that they have here"
    ),
}


def _on(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - SHOWN_HOSTS:,} more" if len(hosts) > SHOWN_HOSTS else ""
    return f"executor on {', '.join(hosts[:SHOWN_HOSTS])}{more}"


def _one_of_each_log_dir(logs: Sequence[LogPlan]) -> list[Source]:
    samples: dict[str, Source] = {}
    for log in logs:
        for sources in sources_of(log)[:1]:
            samples.setdefault(log.log_dir, sources[0])
    return list(samples.values())
