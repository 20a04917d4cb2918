"""Refuses a cluster on which an executor could not do its part, before it has done any of it."""

from collections.abc import Callable, Sequence
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

from cleaner_jobs.messages import LogPlan, RoundSettings, Source
from cleaner_jobs.tasks.executor_paths import Lack
from compactor.errors import RefusedError
from compactor.host.printable import first_few
from compactor.planning.layout import sources_of_group
from compactor.reason_codes import ReasonCode

if TYPE_CHECKING:
    from pyspark import SparkContext

    from cleaner_jobs.tasks.executor_paths import Asked

Names = tuple[tuple[str, str], ...]  # a directory of the driver's, and its name on executors
SHOWN_HOSTS = 3
ASKED_DIRECTORIES = 200  # a call of the operating system each, in each process once


def require_able_executors(
    spark: "SparkContext",
    logs: Sequence[LogPlan],
    facts: RoundSettings,
    names: Names,
    say: Callable[[str], None] = lambda _: None,
) -> "Asked | None":
    """Raise RefusedError, with host and cause, where one lacks Python, package or a directory.

    names: those that executors have for directories of the driver's. Returns what executors that
    come later are to be asked by their first tasks; None where there are none.
    """
    from cleaner_jobs.spark.executor_check import Samples, executor_problems, what_to_ask

    samples = Samples(_directories(logs), _one_of_each_log_dir(logs))
    asked = what_to_ask(spark, facts.work_dir, samples, not facts.dry_run, names)
    found = executor_problems(spark, facts.work_dir, asked, say) if asked else []
    if found:
        worst = min(found, key=lambda problem: list(Lack).index(problem.lack))
        problem = _LINES[worst.lack].format(problem=worst.problem, on=_on(worst.hosts))
        raise RefusedError(problem, ReasonCode.UNFIT_EXECUTOR)
    return asked


_LINES = {
    Lack.PYTHON: (
        "{on}: {problem}; every executor needs this package and what it requires, as the driver "
        "has it, under the Python that PYSPARK_PYTHON names"
    ),
    Lack.WORK_DIR: (
        "{on}: {problem}; --work-dir has to name a directory that the driver and all executors "
        "share, under its name here or one of --executor-path"
    ),
    Lack.LOG_DIR: (
        "{on}: {problem}; every executor has to reach the log directories, to read and to write, "
        "under the paths that they have here or those of --executor-path"
    ),
}


def _on(hosts: Sequence[str]) -> str:
    return f"executor on {first_few(hosts, SHOWN_HOSTS)}"


def _directories(logs: Sequence[LogPlan]) -> list[str]:
    """Of logs, the first of each log directory before all others, and no more than are worth it."""
    by_place: dict[str, list[LogPlan]] = {}
    for log in logs:
        by_place.setdefault(log.log_dir, []).append(log)
    in_turn = (log for turn in zip_longest(*by_place.values()) for log in turn if log)
    return [log.path for log in islice(in_turn, ASKED_DIRECTORIES)]


def _one_of_each_log_dir(logs: Sequence[LogPlan]) -> list[Source]:
    samples: dict[str, Source] = {}
    for log in logs:
        if log.groups and log.log_dir not in samples:
            samples[log.log_dir] = sources_of_group(log, 0)[0]
    return list(samples.values())
