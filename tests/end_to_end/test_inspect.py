"""An inspection by Spark counts in logs that Kafka wrote what a slow and plain reader counts."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from compactor import api
from tests.compactor.inspection.reference_inspection import check_golden_logs
from tests.golden import corpora

pytestmark = pytest.mark.spark


def test_logs_that_kafka_wrote_are_counted_by_spark_as_by_hand(
    spark: SparkSession, tmp_path: Path
) -> None:
    fleet = corpora.extracted()
    options = api.InspectOptions(work_dir=str(tmp_path), session=spark)
    check_golden_logs(fleet.before, fleet, options)
    assert not list(tmp_path.iterdir())
