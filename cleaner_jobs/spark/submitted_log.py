"""How much Spark says under `spark-submit`: errors, or what was asked for.

Spark's own settings of its log, read before we are there, have it say a line for each step of a
job. Where somebody has given others (log4j2.properties, or a level), these stand.
"""

from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf

LEVEL = "spark.log.level"  # not set here: executors would take it, too
_SPARKS_OWN = "org/apache/spark/log4j2-defaults.properties"


def quieten(conf: SparkConf, jvm: Any, is_local: bool) -> None:
    """Before there is a context, which says the most. On a cluster warnings are told, too."""
    if conf.get(LEVEL) is not None:
        return
    with suppress(Py4JError, TypeError):  # another Spark may have other insides: then it says more
        utils = getattr(getattr(jvm.org.apache.spark.util, "Utils$"), "MODULE$")  # Scala's object
        utils.initializeLogIfNecessary(False)  # or Spark reads its settings once more after this
        log4j = jvm.org.apache.logging.log4j
        settings = log4j.LogManager.getContext(False).getConfiguration().getConfigurationSource()
        if _SPARKS_OWN in str(settings.getLocation()):
            utils.setLogLevel(log4j.Level.ERROR if is_local else log4j.Level.WARN)
