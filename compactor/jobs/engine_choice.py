"""Choose the engine that runs the tasks of a round or an inspection, and say why."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cleaner_jobs.messages import LogPlan
from cleaner_jobs.spark.callers_session import HAS_SESSION, has_session, why_unusable
from cleaner_jobs.spark.environment import SUBMITTED_VARIABLE
from compactor.errors import CleaningFailedError, ConfigError, UsageError
from compactor.host.java import find_java
from compactor.host.printable import size_text
from compactor.settings.rules import EngineChoice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cleaner_jobs.local.worker_pool import Workers

SPARK_FROM_BYTES = 1 << 30  # of logs to read; for fewer, to start Java takes longer than it saves
_BESIDE_A_SESSION = f'{HAS_SESSION}. Or pass engine="local", which does without Spark'


class ChosenEngine(NamedTuple):
    """What runs the tasks, and why."""

    choice: EngineChoice  # LOCAL or SPARK
    why: str  # a part of a sentence


Names = tuple[tuple[str, str], ...]  # a directory of the driver's, and its name on executors


class EngineOptions(Protocol):
    """The options, of a run or an inspection, that choose what runs its tasks."""

    @property
    def engine(self) -> EngineChoice: ...

    @property
    def spark_from(self) -> int | None: ...

    @property
    def master(self) -> str | None: ...

    @property
    def session(self) -> "SparkSession | None": ...

    @property
    def workers(self) -> "Workers | None": ...

    @property
    def in_process(self) -> bool: ...

    @property
    def executor_paths(self) -> Names: ...


def require_possible_engine(options: EngineOptions) -> None:
    """Raise ConfigError where the options contradict each other, or the process they are used in.

    Of a session that was passed in where it can do no job; where Spark was asked for, and would
    start beside a session of the caller's.
    """
    session = options.session
    problem = None if session is None else why_unusable(session)
    if problem is not None:
        raise ConfigError(f"{problem}. Give one that runs, or none. Nothing was changed", "session")
    if options.engine == EngineChoice.LOCAL or options.workers is not None:
        for name in ("session", "master"):
            if getattr(options, name) is not None:
                other = "engine" if options.workers is None else "workers"
                raise UsageError("not with local processes, which {} asks for", name, None, [other])
    if options.engine == EngineChoice.SPARK and options.workers is not None:
        raise UsageError("not with {}, which are local", "engine", options.engine, ["workers"])
    if options.engine == EngineChoice.SPARK and session is None and has_session():
        raise ConfigError(f"{_BESIDE_A_SESSION}. Nothing was changed", "session")


def choose_engine(options: EngineOptions, log_bytes: int) -> ChosenEngine:
    """Choose what runs the tasks that read so many bytes of logs, and say why.

    Raise ConfigError where Spark would have to start beside a session of the caller's.
    """
    size = size_text(log_bytes)
    if options.in_process:
        return ChosenEngine(EngineChoice.LOCAL, "in this process")
    if options.workers is not None:
        return ChosenEngine(EngineChoice.LOCAL, "workers were passed in")
    if options.engine != EngineChoice.AUTO:
        return ChosenEngine(options.engine, "as asked for")
    if options.session is not None:
        return ChosenEngine(EngineChoice.SPARK, "a session was passed in")
    if options.master is not None:
        return ChosenEngine(EngineChoice.SPARK, f"the master is {options.master}")
    if SUBMITTED_VARIABLE in os.environ:
        return ChosenEngine(EngineChoice.SPARK, "started by spark-submit")
    limit, limit_text = SPARK_FROM_BYTES, "1 GiB"
    if options.spark_from is not None:
        limit, limit_text = options.spark_from, size_text(options.spark_from)
    if log_bytes < limit:
        why = f"{size} of logs to read, less than {limit_text}"
        return ChosenEngine(EngineChoice.LOCAL, why)
    if has_session():
        raise ConfigError(f"{_BESIDE_A_SESSION}: {size} of logs are to be read", "session")
    try:
        find_java(dict(os.environ))
    except CleaningFailedError:
        return ChosenEngine(EngineChoice.LOCAL, "no Java that Spark runs on was found")
    return ChosenEngine(EngineChoice.SPARK, f"{size} of logs to read")


def bytes_to_read(logs: Iterable[LogPlan]) -> int:
    """Return how many bytes of segments the tasks of a round read, each counted once."""
    return sum(log.log_bytes for log in logs)
