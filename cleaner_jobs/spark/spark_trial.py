"""Starts Spark on this machine, has it do one small job, and ends it: to see whether it can."""

import time

from cleaner_jobs.patience import ending_stopped_processes, why_ended
from cleaner_jobs.spark.spark_session import (
    SPARK_ERRORS,
    cause_of_failure,
    end_spark,
    start_spark,
)
from cleaner_jobs.spark.task_job import one_a_task
from storage.errors import LogCompactionError

MASTER = "local[2]"


def seconds_to_start(work_dir: str) -> float | str:
    """Return how long it took, or in a line why it did not work."""
    began = time.monotonic()
    try:
        with ending_stopped_processes(lambda _: None):
            spark = start_spark(MASTER, "compactor doctor", work_dir)
            one_a_task(spark, 2, lambda number: iter([("number", str(number))]))
            end_spark(spark)
    except LogCompactionError as error:
        return str(error)
    except SPARK_ERRORS as error:
        return f"{cause_of_failure(error)}{why_ended()}"
    return time.monotonic() - began
