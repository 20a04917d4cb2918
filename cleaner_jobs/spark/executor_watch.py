"""Notices that a job waits for executors that do not come, as where a master has lost them all."""

import threading
import time
from collections.abc import Callable

from pyspark import SparkContext

from cleaner_jobs.spark.patience import LOOK_SECONDS, Wait
from cleaner_jobs.spark.spark_session import SPARK_ERRORS
from storage.errors import LogCompactionError

_DRIVER = 1  # Spark counts it among the executors


class NoExecutorError(LogCompactionError):
    """No executor has come for as long as a run waits. Nothing of the stage counts."""

    reason_code = "spark-failed"


class ExecutorWatch:
    """Looks from time to time while a job goes on. Java is asked on another thread: it may hang."""

    def __init__(self, spark: SparkContext, say: Callable[[str], None]) -> None:
        self._spark, self._wait = spark, Wait(say)
        self._executors: int | None = None  # None: not known yet
        self._asking: threading.Thread | None = None
        self._last = time.monotonic()

    def look(self) -> None:
        """Raise NoExecutorError where there has been none for too long."""
        now = time.monotonic()
        if now - self._last < LOOK_SECONDS:
            return
        self._last = now
        if self._asking is None or not self._asking.is_alive():
            self._asking = threading.Thread(target=self._ask, name="executors", daemon=True)
            self._asking.start()
        cause = None
        if self._executors == 0:
            cause = f"{self._spark.master} has no executor for this run"
        if self._wait.look(cause):
            raise NoExecutorError(
                f"{cause}, and gave none for {self._wait.bound:,.0f} s. Look whether its workers "
                "run, are registered with it and have free cores and memory"
            )

    def _ask(self) -> None:
        try:
            known = self._spark._jsc.sc().statusTracker().getExecutorInfos()
            self._executors = len(known) - _DRIVER
        except SPARK_ERRORS:  # the job itself says that Java has gone
            self._executors = None
