"""What a Spark that a run did not start allows: a session of the caller's, or spark-submit's."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cleaner_jobs.spark.environment import SUBMITTED_VARIABLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_CONNECT = "pyspark.sql.connect."
HAS_SESSION = "this process has a Spark session, which is used only if you pass it as session=…"


def why_unusable(session: object) -> str | None:
    """Say why a session that was handed in can do no job; None: it can."""
    if type(session).__module__.startswith(_CONNECT):
        return "is one of Spark Connect, which knows no RDD, and so cannot run a round"
    try:
        java = session.sparkContext._jsc  # type: ignore[attr-defined]
    except AttributeError:
        return f"expected a SparkSession, not {type(session).__name__}"
    if java is None:
        return "was stopped"
    try:
        return "was stopped" if java.sc().isStopped() else None
    except Exception:  # of py4j, which is not loaded for this: whatever it is, Java does not answer
        return "has lost its Java process"


def has_session() -> bool:
    """Return whether a session runs in this process. pyspark is not loaded to find out."""
    loaded = sys.modules.get("pyspark")
    context = getattr(loaded, "SparkContext", None)
    return getattr(context, "_active_spark_context", None) is not None


LOCAL_DIR = "spark.local.dir"


def local_dirs_in_use(environ: Mapping[str, str], session: "SparkSession | None") -> list[str]:
    """Return the block directories that spark-submit, or a session, was given, if any.

    Of spark-submit before it has made any: it does so when a session begins.
    """
    if session is None and SUBMITTED_VARIABLE not in environ:
        return []
    return [path for path in _spark_files(session).split(",") if path]


def _spark_files(session: "SparkSession | None") -> str:
    from pyspark import SparkConf  # only here: most commands start no Spark

    if session is not None:
        # not by getConf, which asks Java for each of its options
        return session.sparkContext._conf.get(LOCAL_DIR, "") or ""
    from cleaner_jobs.spark.gateway import connect_to_java

    connect_to_java()  # which holds the options of spark-submit
    return SparkConf().get(LOCAL_DIR, "") or ""
