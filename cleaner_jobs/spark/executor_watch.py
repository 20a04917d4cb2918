"""Notices that a job waits for executors that do not come, or for tasks that give no sign of life.

The first happens where a master has lost its workers. The second happens where an executor or its
Python worker is stopped (SIGSTOP), or its host is cut off, long before Spark notices it, if it
does.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from pyspark import SparkContext

from cleaner_jobs.spark.environment import is_local
from cleaner_jobs.spark.patience import LOOK_SECONDS, Wait
from cleaner_jobs.spark.spark_session import SPARK_ERRORS
from cleaner_jobs.tasks.heartbeat import Sign, signs_of_life
from storage.errors import LogCompactionError

_DRIVER = 1  # Spark counts it among the executors


class NoExecutorError(LogCompactionError):
    """Executors have done nothing for as long as a run waits. Nothing of the stage counts."""

    reason_code = "spark-failed"


class ExecutorWatch:
    """Looks from time to time while a job goes on. Java is asked on another thread: it may hang."""

    def __init__(
        self, spark: SparkContext, say: Callable[[str], None], work_dir: str, stage: str | None
    ) -> None:
        """stage: whose tasks give signs of life; None: of a job that is short."""
        self._spark, self._wait = spark, Wait(say)
        self._has_executors = not is_local(spark.master or "")
        self._work_dir, self._stage = work_dir, stage
        self._signs: list[Sign] | None = None
        self._executors: int | None = None  # None: not known yet
        self._asking: threading.Thread | None = None
        self._last = time.monotonic()

    def look(self) -> None:
        """Raise NoExecutorError where nothing has been done for too long."""
        now = time.monotonic()
        if now - self._last < LOOK_SECONDS:
            return
        self._last = now
        if self._has_executors and (self._asking is None or not self._asking.is_alive()):
            self._asking = threading.Thread(target=self._ask, name="executors", daemon=True)
            self._asking.start()
        cause, advice = self._cause()
        if self._wait.look(cause):
            raise NoExecutorError(
                f"{cause}, and the run has waited for {self._wait.bound:,.0f} s. {advice}"
            )

    def _cause(self) -> tuple[str | None, str]:
        """What is being waited for, and what to do about it; None: nothing."""
        if self._executors == 0:
            return (
                f"{self._spark.master} has no executor for this run",
                "Look whether its workers run, are registered with it and have free cores and "
                "memory",
            )
        before = self._signs
        if self._stage is None:
            who = "no executor has answered"
        else:
            with suppress(OSError):  # what cannot be looked at gives no sign
                self._signs = signs_of_life(self._work_dir, self._stage)
            if self._signs != before:
                return None, ""
            at_work = ", ".join(sign.who for sign in (self._signs or ())[:3] if sign.who)
            who = f"no task gives a sign of life{at_work and f' ({at_work})'}"
        return who, "Look whether the executors and their Python workers run or are stopped"

    def _ask(self) -> None:
        try:
            known = self._spark._jsc.sc().statusTracker().getExecutorInfos()
            self._executors = len(known) - _DRIVER
        except SPARK_ERRORS:  # the job itself says that Java has gone
            self._executors = None
