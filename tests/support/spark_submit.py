"""How a script is started by spark-submit."""

import os
from collections.abc import Mapping

from cleaner_jobs.spark.environment import spark_home


def spark_submit(
    script: object,
    *words: object,
    master: str = "local[1]",
    conf: Mapping[str, object] = {},
) -> list[str]:
    """The command that runs a script with its words; conf: Spark's options."""
    submit = os.path.join(spark_home(os.environ), "bin", "spark-submit")
    options = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    return [*map(str, (submit, "--master", master, *options, script, *words))]
