"""One Spark session for all rounds of these tests that need none of their own."""

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from cleaner_jobs.spark.spark_session import UNIX_SOCKETS, end_spark, start_spark
from cleaner_jobs.user_cache import cache_dir
from compactor.host.java import use_java
from compactor.jobs import engine_choice
from compactor.planning import layout


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    environ = dict(os.environ)
    use_java(os.environ, cache_dir(os.environ))
    work_dir = str(tmp_path_factory.mktemp("spark"))
    # a test becomes another user, who may not open the sockets of the one who started Java
    context = start_spark("local[2]", "tests", work_dir, {UNIX_SOCKETS: "false"})
    for name in set(os.environ) - set(environ):  # what a start leaves is not for other tests
        del os.environ[name]
    os.environ.update(environ)
    smallest = layout.SMALLEST_SHARE_BYTES
    layout.SMALLEST_SHARE_BYTES = 1  # groups of these small logs are cut and joined, too
    # other tests of this process start no Spark beside it, or hand it in behind the check
    patch = pytest.MonkeyPatch()
    patch.setattr(engine_choice, "has_session", lambda: False)
    yield SparkSession(context)
    layout.SMALLEST_SHARE_BYTES = smallest
    patch.undo()
    end_spark(context)
