"""Reads a log directory by Spark, and prints what came as JSON: for tests, in a process of its own.

    python -m tests.cleaner_jobs.spark.kafka_log_probe LOG_DIR READS

READS: a JSON list of objects, each with a name, options, and a schema, a filter and a path of its
own if there are any. Of a read that fails its error is printed.
"""

import json
import os
import sys
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cleaner_jobs.spark.kafka_log_source import KafkaLogDataSource


def main() -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    path, reads = sys.argv[1], json.loads(sys.argv[2])
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "Asia/Kolkata")
        .getOrCreate()
    )
    try:
        spark.dataSource.register(KafkaLogDataSource)
        sys.stdout.write(
            json.dumps({read["name"]: _told(spark, path, read) for read in reads}) + "\n"
        )
    finally:
        spark.stop()


def _told(spark: SparkSession, path: str, read: dict[str, Any]) -> dict[str, Any]:
    pushes = read["options"].get("pushFilters", "false")
    spark.conf.set("spark.sql.python.filterPushdown.enabled", pushes)
    try:
        reader = spark.read.format("kafka-log").options(**read["options"])
        if "schema" in read:
            reader = reader.schema(read["schema"])
        frame = reader.load(read.get("path", path))
        if "filter" in read:
            frame = frame.filter(read["filter"])
        return {"rows": _rows(frame), "tasks": frame.rdd.getNumPartitions()}
    except PySparkException as error:
        return {"error": str(error)}


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [
        {name: _plain(value) for name, value in row.asDict(True).items()} for row in frame.collect()
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [{name: _plain(of_it) for name, of_it in header.items()} for header in value]
    if isinstance(value, bytes | bytearray):
        return value.hex()
    return value.timestamp() if hasattr(value, "timestamp") else value


if __name__ == "__main__":
    main()
