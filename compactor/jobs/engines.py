"""Open what runs the tasks of a round or an inspection: processes of this host, or Spark.

- `Engine` is what a round asks of it. Nothing above it knows which one it is.
- `open_engine` opens the one that `engine_choice` has chosen. A cluster is refused before any work
  where an executor could not do its part (`require_able_executors`).
- `StageRunner` runs a stage. While Spark works the driver polls (`Poll`), and computes without
  being in its way (`short_switch_interval`).
"""

import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cleaner_jobs import first_use
from cleaner_jobs.local.in_process_engine import InProcessEngine
from cleaner_jobs.local.local_engine import LocalEngine
from cleaner_jobs.local.worker_pool import Workers
from cleaner_jobs.machine_size import cores
from cleaner_jobs.messages import (
    PROBLEM,
    LogPlan,
    RoundSettings,
    Row,
    Source,
    TaskProblem,
    value_of,
)
from cleaner_jobs.patience import ending_stopped_processes
from cleaner_jobs.signals import deferred_signals
from cleaner_jobs.spark.environment import SUBMITTED_VARIABLE, require_fit
from cleaner_jobs.tasks.executor_paths import Lack
from cleaner_jobs.tasks.heartbeat import done_bytes, wait_for_silence
from cleaner_jobs.user_cache import cache_dir
from compactor.errors import RefusedError
from compactor.host.java import use_java
from compactor.host.machine import temporary_files
from compactor.host.printable import counted, first_few
from compactor.host.progress import START_STAGE, ProgressSink
from compactor.jobs.early_workers import early_workers
from compactor.jobs.engine_choice import ChosenEngine, EngineOptions, Names, choose_engine
from compactor.jobs.work_dir import open_work_dir
from compactor.outcome.round_report import FIRST_USE, SESSION, SESSION_END
from compactor.reason_codes import ReasonCode
from compactor.settings.rules import EngineChoice
from storage.files.files import Disk
from storage.files.local import LOCAL

if TYPE_CHECKING:
    from pyspark import SparkContext

    from cleaner_jobs.tasks.executor_paths import Asked

POLL_SECONDS = 0.25
SILENCE_SECONDS = 30.0  # a task that Spark has given up ends within a few
BUSY_SWITCH_SECONDS = 0.0001
SHOWN_HOSTS = 3
ASKED_DIRECTORIES = 200  # a call of the operating system each, in each process once

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


class Engine(Protocol):
    """Runs stages, one at a time."""

    def core_count(self) -> int:
        """How many tasks work at once."""
        ...

    def run_stage(
        self,
        work_dir: str,
        stage: str,
        tasks: list[dict[str, Any]],
        take: Callable[[Sequence[Row]], None],
    ) -> list[Row]:
        """Run the tasks of a stage, and return their rows, those of a task once.

        take: is called every so often with the early rows that have come since, if any. What it
        raises ends the stage.
        """
        ...


class ReadingSettings(Protocol):
    """How tasks are run that change no log."""

    @property
    def engine(self) -> EngineOptions: ...

    @property
    def work_dir(self) -> str | None: ...

    @property
    def now_ms(self) -> int: ...

    @property
    def disk(self) -> Disk: ...  # of the work directory


Timed = Callable[[str], AbstractContextManager[None]]  # by the name of a phase


@contextmanager
def open_engine(
    chosen: ChosenEngine,
    options: EngineOptions,
    logs: Sequence[LogPlan],
    facts: RoundSettings,
    progress: ProgressSink,
    timed: Timed = lambda _: nullcontext(),
    disk: Disk = LOCAL,
) -> Iterator[Engine]:
    """Open this process, workers of this host, the caller's Spark or a Spark of its own.

    What is started ends with the context. timed: what times a start, and what the first use of a
    machine does, by phase.
    """
    if options.in_process:
        yield InProcessEngine(disk)
    elif chosen.choice is EngineChoice.LOCAL:
        with _workers(options, progress, timed) as workers:
            processes = _processes(workers, options.workers is None)
            progress.message(f"engine: local, {processes} ({chosen.why})")
            yield LocalEngine(workers, progress.message, disk)
    else:
        early = early_workers()
        if early is not None:
            early.close()
        with _spark_engine(options, logs, facts, progress, timed) as spark:
            yield spark


class EngineToRead(NamedTuple):
    """An engine for tasks that change no log, and what they share."""

    engine: Engine
    facts: RoundSettings


@contextmanager
def open_engine_to_read(
    settings: ReadingSettings, logs: Sequence[LogPlan], log_bytes: int, progress: ProgressSink
) -> Iterator[EngineToRead]:
    """Open a work directory and the engine for tasks that read so many bytes of logs.

    Where the context ends with an error, no task goes on before the directory is removed.
    """
    run_id = secrets.token_hex(4)
    with open_work_dir(settings.work_dir, run_id, settings.disk) as work_dir:
        facts = RoundSettings(
            run_id=run_id,
            work_dir=work_dir,
            now_ms=settings.now_ms,
            hash_key_low=secrets.randbits(64),
            hash_key_high=secrets.randbits(64),
            dry_run=True,
        )
        progress.stage(START_STAGE, 0)
        try:
            chosen = choose_engine(settings.engine, log_bytes)
            with open_engine(
                chosen, settings.engine, logs, facts, progress, disk=settings.disk
            ) as engine:
                yield EngineToRead(engine, facts)
        except BaseException:
            with deferred_signals():
                wait_for_silence(work_dir, SILENCE_SECONDS, settings.disk)
            raise


@contextmanager
def _workers(options: EngineOptions, progress: ProgressSink, timed: Timed) -> Iterator[Workers]:
    """Start worker processes that end with the context, or take those of the caller."""
    workers = options.workers or early_workers()
    given = None if workers is None else nullcontext(workers)
    own = () if workers is None else workers.host_pids  # started early, or by a call before
    with ending_stopped_processes(progress.message, own=own), given or Workers() as workers:
        if not own:  # or they have loaded the kernels: to see that takes a look at each source
            first_use.prepare(os.environ, progress.message, lambda: timed(FIRST_USE))
        with workers.in_use():
            with timed(SESSION):
                workers.pool()
            yield workers


def _processes(workers: Workers, are_own: bool) -> str:
    count, most = workers.processes, cores()
    words = counted(count, "process", "processes")
    if are_own and count < most:
        return f"{words} for {most} cores, as memory suffices for no more"
    return words


@contextmanager
def _spark_engine(
    options: EngineOptions,
    logs: Sequence[LogPlan],
    facts: RoundSettings,
    progress: ProgressSink,
    timed: Timed,
) -> Iterator[Engine]:
    if options.session is None:
        require_fit(options.master, os.environ)  # before another Spark's pyspark is loaded
    from cleaner_jobs.spark.task_job import RunDescription, SparkEngine

    session = options.session
    given = None if session is None else nullcontext(session.sparkContext)
    with given or _spark(options.master, facts, progress, timed) as spark:
        asked = require_able_executors(spark, logs, facts, options.executor_paths, progress.message)
        names = {log.log_id: f"{log.topic}-{log.partition}" for log in logs}
        description, is_own = RunDescription(facts.run_id, names), session is None
        yield SparkEngine(spark, description, asked, progress.message, is_own)


def require_able_executors(
    spark: "SparkContext",
    logs: Sequence[LogPlan],
    facts: RoundSettings,
    names: Names,
    say: Callable[[str], None] = lambda _: None,
) -> "Asked | None":
    """Raise RefusedError, with host and cause, where one lacks Python, package or a directory.

    names: those that executors have for directories of the driver's. Returns what executors that
    come later are to be asked by their first tasks; None without executors.
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


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """A thread that computes lets others in after a tenth of a millisecond, not five.

    To hand a job to Spark takes some twenty calls to Java, each of which waits for its turn.
    """
    usual = sys.getswitchinterval()
    sys.setswitchinterval(BUSY_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


class StageRunner:
    """Runs the tasks of each stage, shows how far they are, and parses their rows."""

    def __init__(
        self, engine: Engine, settings: RoundSettings, progress: ProgressSink, disk: Disk
    ) -> None:
        self._engine, self._settings = engine, settings
        self._progress, self._disk = progress, disk

    def run(
        self,
        stage: str,
        tasks: list[dict[str, Any]],
        log_bytes: int,
        take: Callable[[list[Any]], None] | None = None,
        shown_as: str = "",
    ) -> tuple[list[list[Any]], list[TaskProblem]]:
        """Return the values of rows, and the problems among them.

        log_bytes: what the tasks work through. take: gets the values of partial results. shown_as:
        the name of the stage in progress, if it has another there.
        """
        self._progress.stage(shown_as or stage, log_bytes)
        if not tasks:
            return [], []
        tasks = [{"settings": self._settings, **task} for task in tasks]
        work_dir = self._settings.work_dir
        poll = Poll(lambda: done_bytes(work_dir, stage, self._disk), self._progress.advance)

        def look(partial_results: Sequence[Row]) -> None:
            for _, value in partial_results:
                assert take is not None, f"{stage} has no partial results"
                take(json.loads(value))
            poll.look()

        rows = self._engine.run_stage(work_dir, stage, tasks, look)
        self._progress.advance(log_bytes)
        decoded = [(kind, json.loads(value)) for kind, value in rows]
        problems = [value_of(TaskProblem, values) for kind, values in decoded if kind == PROBLEM]
        return [values for kind, values in decoded if kind != PROBLEM], problems


class Poll:
    """Reports how far the tasks of a stage are, from time to time while it is looked at."""

    def __init__(self, ask: Callable[[], int], report: Callable[[int], None]) -> None:
        self._ask, self._report, self._last = ask, report, time.monotonic()

    def look(self) -> None:
        """Raise what report raises. Progress that cannot be read is not reported."""
        now = time.monotonic()
        if now - self._last < POLL_SECONDS:
            return
        self._last = now
        try:
            done = self._ask()
        except OSError:
            return
        self._report(done)


@contextmanager
def _spark(
    master: str | None, facts: RoundSettings, progress: ProgressSink, timed: Timed
) -> Iterator["SparkContext"]:
    """A Spark of its own."""
    is_submitted = SUBMITTED_VARIABLE in os.environ
    java = [os.getppid()] if is_submitted else []
    with temporary_files(facts.work_dir), ending_stopped_processes(progress.message, java):
        if not is_submitted:  # or Java is there already
            use_java(os.environ, cache_dir(os.environ), work_dir=facts.work_dir)
        first_use.prepare(os.environ, progress.message, lambda: timed(FIRST_USE))
        with timed(SESSION):
            from cleaner_jobs.spark.spark_session import end_spark, start_spark

            spark = start_spark(master, "log-compactor", facts.work_dir, say=progress.message)
        try:
            yield spark
        finally:
            with deferred_signals(), timed(SESSION_END):
                end_spark(spark)


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
            samples[log.log_dir] = log.sources_of(0)[0]
    return list(samples.values())
