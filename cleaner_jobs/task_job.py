"""Spark: one job for each stage of a round, a Spark task for each task of ours.

Only the number of a task travels to it, and one row a part, verdict or piece comes back.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from cleaner_jobs.task_values import Row, save_task, task_file

ROW_SCHEMA = "kind string, value string"
ARROW_SCHEMA = pa.schema([("kind", pa.string()), ("value", pa.string())])


def run_stage(
    spark: SparkSession, work_dir: str, stage: str, tasks: list[dict[str, Any]]
) -> list[Row]:
    """Run the tasks of a stage, and return their rows, a retried task's only once."""
    for number, task in enumerate(tasks):
        save_task(task_file(work_dir, stage, number), task)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from cleaner_jobs.tasks import run_task  # the kernels, which the driver has no use for

        context = TaskContext.get()
        assert context is not None, "runs in a Spark task only"
        for batch in batches:
            for number in batch.column(0).to_pylist():
                attempt = f"{stage}-{number}-{context.taskAttemptId()}"
                rows = list(run_task(work_dir, stage, number, attempt))
                columns = [list(column) for column in zip(*rows, strict=True)] or [[], []]
                yield pa.RecordBatch.from_arrays(
                    [pa.array(column, pa.string()) for column in columns], schema=ARROW_SCHEMA
                )

    numbers = spark.range(0, len(tasks), 1, len(tasks))
    table = numbers.mapInArrow(work, ROW_SCHEMA).toArrow()
    return list(
        zip(table.column("kind").to_pylist(), table.column("value").to_pylist(), strict=True)
    )
