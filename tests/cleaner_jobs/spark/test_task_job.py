"""A job is canceled where its stage is left before its end, and never after it."""

from threading import Event
from typing import Any

import pytest

from cleaner_jobs.spark.task_job import JobGroup, RunDescription, running_job

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


RUN = RunDescription("5c0d7f21", {number: f"orders-{number}" for number in range(3000)})


@pytest.mark.parametrize(
    ("tasks", "logs"),
    [
        ([{"stretches": [(2, "a"), (1, "b")]}, {"stretches": [(2, "c")]}], "orders-2, orders-1"),
        ([{"logs": [(3, ["part"])]}], "orders-3"),
        ([{"logs": [[(3, "stretch"), (3, "stretch")]]}], "orders-3"),
        (
            [{"logs": [(number,)]} for number in range(2005)],
            "orders-0, orders-1, orders-2, orders-3, orders-4 and 2,000 more",
        ),
    ],
)
def test_the_logs_of_the_tasks_are_named(tasks: list[dict[str, Any]], logs: str) -> None:
    assert RUN.of_stage("scan", tasks) == f"compactor 5c0d7f21 scan: {logs}"
