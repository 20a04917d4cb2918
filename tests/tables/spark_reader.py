"""Spark as a reader: one session, and one read of all logs of a log directory."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from cleaner_jobs.spark.kafka_log_source import KafkaLogDataSource
from tests.tables.dumped import Row
from tests.tables.readers import Found, plain


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """With the Python that runs this."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder: Any = SparkSession.builder
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.master("local[2]").getOrCreate()
    session.dataSource.register(KafkaLogDataSource)
    try:
        yield session
    finally:
        session.stop()


def read_logs(session: SparkSession, log_dir: Path, isolation: str) -> dict[str, Found]:
    """By topic; Spark and Python agree about the time zone."""
    session.conf.set("spark.sql.session.timeZone", os.environ["TZ"])
    frame = session.read.format("kafka-log").option("isolation", isolation).load(str(log_dir))
    return _by_topic(frame)


def read_parquet(session: SparkSession, files: Path) -> dict[str, Found]:
    return _by_topic(session.read.parquet(str(files)))


def _by_topic(frame: DataFrame) -> dict[str, Found]:
    rows = frame.collect()
    assert frame.count() == len(rows)
    found: dict[str, list[Row]] = {}
    for row in plain(row.asDict() for row in rows):
        found.setdefault(row["topic"], []).append(row)
    return {
        topic: sorted(of_topic, key=lambda row: int(row["offset"]))
        for topic, of_topic in found.items()
    }
