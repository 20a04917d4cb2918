"""A job is canceled where its stage is left before its end, and never after it."""

from threading import Event
from typing import Any

import pytest

from cleaner_jobs.spark.job_description import JobGroup
from cleaner_jobs.spark.task_job import running_job

GROUP = JobGroup("/work: scan", "a scan")


class Spark:
    """Notes what is asked of it. Its job ends when it is canceled."""

    def __init__(self) -> None:
        self.canceled, self.is_over = list[str](), Event()

    def setJobGroup(self, *_: object, **__: object) -> None:  # noqa: N802
        pass

    def cancelJobGroup(self, name: str) -> None:  # noqa: N802
        self.canceled.append(name)
        self.is_over.set()


def test_a_job_whose_thread_outlives_it_is_not_canceled() -> None:
    """Java would hear of it late, and end the job of the next stage."""
    spark: Any = Spark()
    is_watched = Event()

    def work() -> list[Any]:
        is_watched.wait(60)
        return []

    with running_job(spark, GROUP, work) as outcome:
        outcome.add_done_callback(lambda _: spark.is_over.wait(60))  # on the thread of the job
        is_watched.set()
        assert outcome.result(60) == []
    spark.is_over.set()
    assert spark.canceled == []


def test_a_job_that_is_left_is_canceled_before_anything_else_happens() -> None:
    spark: Any = Spark()

    def work() -> list[Any]:
        spark.is_over.wait(60)
        return []

    with pytest.raises(KeyboardInterrupt), running_job(spark, GROUP, work):
        raise KeyboardInterrupt
    assert spark.canceled == [GROUP.name]
