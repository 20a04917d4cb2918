"""Where a Spark that is not started here keeps its blocks.

One that is started here keeps them in the run's work directory.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cleaner_jobs.spark.class_archive import SUBMITTED_VARIABLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL_DIR = "spark.local.dir"


def given_local_dirs(environ: Mapping[str, str], session: "SparkSession | None") -> list[str]:
    """The directories that spark-submit, or a session, was given; none where it is left open.

    Of spark-submit before it has made any: it does so when a session begins.
    """
    if session is None and SUBMITTED_VARIABLE not in environ:
        return []
    return [path for path in _given(session).split(",") if path]


def _given(session: "SparkSession | None") -> str:
    from pyspark import SparkConf  # only here: most commands start no Spark

    if session is not None:
        # not by getConf, which asks Java for each of its options
        return session.sparkContext._conf.get(LOCAL_DIR, "") or ""
    from cleaner_jobs.spark.submitted_java import connect_to_java

    connect_to_java()  # which holds the options of spark-submit
    return SparkConf().get(LOCAL_DIR, "") or ""
