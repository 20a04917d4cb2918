"""Makes the class archive: takes Spark through a small round's motions, then has Java dump it.

Run as a process of its own by `class_archive.start_making`, since Java dumps as it ends.
"""

import os
import tempfile
from collections.abc import Iterator

import pyarrow as pa

from cleaner_jobs.spark.class_archive import archive_path, forget_older
from cleaner_jobs.spark.spark_session import (
    JAVA_OPTIONS,
    build_session,
    end_session,
    kill_java,
    session_options,
)

MASTER = "local[2]"


def make() -> None:
    archive = archive_path(os.environ)
    temporary = archive.with_name(f"{archive.name}.{os.getpid()}.tmp")
    with tempfile.TemporaryDirectory(prefix="compactor-") as work_dir:
        java_options = session_options(MASTER, work_dir, os.environ)[JAVA_OPTIONS]
        dumping = f'{java_options} "-XX:ArchiveClassesAtExit={temporary}"'
        try:
            session = build_session(MASTER, "class archive", work_dir, {JAVA_OPTIONS: dumping})
            numbers = session.range(0, 2, 1, 2)
            numbers.mapInArrow(_as_it_is, numbers.schema).toArrow()
            end_session(session)
        except KeyboardInterrupt:
            kill_java()  # it would dump what it has
            temporary.unlink(missing_ok=True)
            raise
    temporary.replace(archive)  # whole, or not there
    forget_older(archive)


def _as_it_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    make()
