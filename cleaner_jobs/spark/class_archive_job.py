"""Makes the class archive: takes Spark through a small round's motions, then has Java dump it.

Run as a process of its own by `first_use`, since Java dumps as it ends.
"""

import os
import tempfile

from cleaner_jobs.spark.class_archive import archive_path, forget_older
from cleaner_jobs.spark.gateway import JAVA_OPTIONS
from cleaner_jobs.spark.spark_session import end_spark, kill_java, session_options, start_spark
from cleaner_jobs.spark.task_job import one_a_task

MASTER = "local[2]"


def make() -> None:
    archive = archive_path(os.environ)
    temporary = archive.with_name(f"{archive.name}.{os.getpid()}.tmp")
    with tempfile.TemporaryDirectory(prefix="compactor-") as work_dir:
        java_options = session_options(MASTER, work_dir, os.environ)[JAVA_OPTIONS]
        dumping = f'{java_options} "-XX:ArchiveClassesAtExit={temporary}"'
        try:
            spark = start_spark(MASTER, "class archive", work_dir, {JAVA_OPTIONS: dumping})
            one_a_task(spark, 2, lambda number: iter([("number", str(number))]))
            end_spark(spark)
        except KeyboardInterrupt:
            kill_java()  # it would dump what it has
            temporary.unlink(missing_ok=True)
            raise
    temporary.replace(archive)  # whole, or not there
    forget_older(archive)


if __name__ == "__main__":
    make()
