"""Makes the class archive: takes Spark through a small round's motions, then has Java dump it.

Run as a process of its own by `first_use`, since Java dumps as it ends.
"""

import os
import signal
from types import FrameType

from cleaner_jobs.first_use import WORK_DIR_VARIABLE
from cleaner_jobs.spark.environment import own_environ
from cleaner_jobs.spark.gateway import JAVA_OPTIONS
from cleaner_jobs.spark.java_cache import archive_path
from cleaner_jobs.spark.spark_session import end_spark, kill_java, session_options, start_spark
from cleaner_jobs.spark.task_job import one_a_task
from cleaner_jobs.user_cache import forget, forget_older, temporary_directory
from storage.files.local import LOCAL

MASTER = "local[2]"


def _end_once(_number: int, _frame: FrameType | None) -> None:
    """Ignore further interrupts, and raise KeyboardInterrupt.

    Where all processes are interrupted, this one gets the signal twice, also from its parent: the
    second time must not end the cleaning up.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def make() -> None:
    signal.signal(signal.SIGINT, _end_once)
    environ = own_environ(os.environ, local=True)
    archive = archive_path(environ)
    temporary = f"{archive}.{os.getpid()}.tmp"
    parent = os.environ.get(WORK_DIR_VARIABLE)
    with temporary_directory("archive-", parent) as work_dir:
        java_options = session_options(MASTER, work_dir, environ)[JAVA_OPTIONS]
        dumping = f'{java_options} "-XX:ArchiveClassesAtExit={temporary}"'
        try:
            spark = start_spark(MASTER, "class archive", work_dir, {JAVA_OPTIONS: dumping})
            one_a_task(spark, 2, lambda number: iter([("number", str(number))]))
            end_spark(spark)
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # see _end_once
            kill_java()  # it would dump what it has
            forget(temporary)
            raise
    LOCAL.rename(temporary, archive)  # whole, or not there
    forget_older(archive)


if __name__ == "__main__":
    make()
