"""Random logs, read in every way, and what does not come as `dump` shows it."""

import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from compactor import RecordStream, Selection, read_table
from storage.arrow.selection import Isolation
from tests.tables.dumped import rows_of
from tests.tables.random_logs import write_random_logs
from tests.tables.readers import Found, differences, readers
from tests.tables.spark_reader import read_logs, read_parquet

ZONES = ("UTC", "Pacific/Kiritimati", "Etc/GMT+12")  # by which readers show times: none, far, far
ISOLATIONS: tuple[Isolation, ...] = get_args(Isolation)


@contextmanager
def time_zone(name: str) -> Iterator[None]:
    """Of this process."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = name
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


def problems(
    root: Path, first_seed: int, count: int, session: SparkSession | None = None
) -> list[str]:
    """A line for each log, reader and isolation level that differs or raises."""
    log_dir, found = root / "logs", []
    partitions = write_random_logs(log_dir, first_seed, count)
    for isolation in ISOLATIONS:
        files = root / isolation
        files.mkdir()
        expected = {path: rows_of(path, isolation == "read_committed") for path in partitions}
        for path, rows in expected.items():
            found += _of_log(path, files, isolation, rows)
        if session is not None:
            of_logs = partial(read_logs, session, log_dir, isolation)
            found += _of_all(f"Spark, {isolation}", of_logs, expected)
            of_files = partial(read_parquet, session, files)
            found += _of_all(f"Spark, Parquet, {isolation}", of_files, expected)
    return found


def _of_log(path: Path, files: Path, isolation: Isolation, expected: Found) -> list[str]:
    stream = RecordStream(path, Selection(isolation=isolation))
    file = files / f"{path.name}.parquet"
    with pq.ParquetWriter(file, stream.schema) as writer:
        for batch in stream:
            writer.write_batch(batch)
    table = read_table(path, Selection(isolation=isolation))
    found = []
    for name, (of_table, of_parquet) in readers().items():
        label = f"{path.name}, {isolation}, {name}"
        found += [f"{label}: {wrong}" for wrong in _wrong(of_table, table, expected)]
        found += [f"{label}, Parquet: {wrong}" for wrong in _wrong(of_parquet, file, expected)]
    return found


def _wrong(read: Callable[[Any], Found] | None, source: Any, expected: Found) -> list[str]:
    try:
        return [] if read is None else differences(read(source), expected)
    except BaseException as error:  # a panic of Polars is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return [f"raised {''.join(traceback.format_exception_only(error)).strip()}"[:300]]


def _of_all(
    label: str, read: Callable[[], dict[str, Found]], expected: Mapping[Path, Found]
) -> list[str]:
    """Of all logs at once."""
    try:
        by_topic = read()
    except Exception as error:
        return [f"{label}: raised {error}"[:600]]
    return [
        f"{label}, {path.name}: {wrong}"
        for path, rows in expected.items()
        for wrong in differences(by_topic.get(path.name.rpartition("-")[0], []), rows)
    ]
