"""Whether this process has a Spark session that a run must leave alone."""

import sys

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
    """Whether a session runs in this process. pyspark is not loaded to find out."""
    loaded = sys.modules.get("pyspark")
    context = getattr(loaded, "SparkContext", None)
    return getattr(context, "_active_spark_context", None) is not None
