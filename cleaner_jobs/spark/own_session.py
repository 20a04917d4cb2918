"""Whether this process has a Spark session that a run must leave alone."""

import sys

HAS_SESSION = "this process has a Spark session, which is used only if you pass it as session=…"


def has_session() -> bool:
    """Whether a session runs in this process. pyspark is not loaded to find out."""
    loaded = sys.modules.get("pyspark")
    context = getattr(loaded, "SparkContext", None)
    return getattr(context, "_active_spark_context", None) is not None
