"""What Spark shows of a job: the run, the phase, the logs of its tasks."""

from typing import Any

import pytest

from cleaner_jobs.spark.job_description import RunDescription

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
