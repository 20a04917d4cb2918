"""What a run needs to start Spark: Java, Spark's jars, and what is kept from run to run."""

import os
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from cleaner_jobs.spark.class_archive import (
    archive_path,
    cache_dir,
    can_be_made,
    is_kept,
    spark_home,
)
from cleaner_jobs.spark.first_use import kernels_mark
from compactor.doctor.checks import Check, fail, ok, warn
from compactor.errors import CleaningFailedError
from compactor.host.java import Java, find_java, home_to_use

_PREPARE = "The first run does it, in half a minute; python -m compactor.prepare does it now."


def spark_checks(environ: Mapping[str, str], starts: bool) -> list[Check]:
    """Look at all of them. starts: also start Spark and let it do one small job."""
    try:
        java = find_java(dict(environ))
    except CleaningFailedError as error:
        return [fail("Java", str(error)), _spark(environ), _kernels(environ)]
    found = ok("Java", f"{java.major} at {java.home} ({java.origin})")
    by_java = dict(environ) | {"JAVA_HOME": str(home_to_use(java, cache_dir(environ)))}
    checks = [found, _spark(environ), _archive(by_java, java), _kernels(environ)]
    return [*checks, _start(by_java)] if starts else checks


def _spark(environ: Mapping[str, str]) -> Check:
    home = spark_home(environ)
    jars = home / "jars"
    if not any(jars.glob("spark-core_*.jar")):
        return fail(
            "Spark",
            f"no jars of Spark in {jars}",
            "Unset SPARK_HOME, or let it name a whole Spark of the version of pyspark.",
        )
    python_side = metadata.version("pyspark")
    (core, *_) = (path.name for path in jars.glob("spark-core_*.jar"))
    java_side = core.removesuffix(".jar").rpartition("-")[2]
    found = f"{python_side} at {home}"
    if java_side.startswith(python_side.split(".dev")[0]):
        return ok("Spark", found)
    return fail(
        "Spark",
        f"pyspark is {python_side}, and the jars in {jars} are {java_side}",
        "Unset SPARK_HOME, or install the pyspark of that version.",
    )


def _archive(environ: Mapping[str, str], java: Java) -> Check:
    subject = "class archive"
    archive = archive_path(environ)
    if is_kept(archive):
        return ok(subject, str(archive))
    failed = archive.with_suffix(".log")
    if is_kept(failed):
        return warn(
            subject,
            f"it could not be made: {failed}",
            "Each start takes some seconds more. Remove that file, and the next run tries again.",
        )
    if not can_be_made(environ):
        return warn(
            subject,
            f"the Java at {java.home} brings no archive of its own to put ours on",
            "Each start takes some seconds more. A whole Java (a JDK or JRE of the system) has it.",
        )
    return warn(subject, "Java's classes are not archived yet", _PREPARE)


def _kernels(environ: Mapping[str, str]) -> Check:
    subject = "kernels"
    if is_kept(kernels_mark(environ)):
        return ok(subject, f"compiled for {platform.machine()}, numba {metadata.version('numba')}")
    return warn(subject, "not compiled yet for this source and this machine", _PREPARE)


def _start(environ: Mapping[str, str]) -> Check:
    from cleaner_jobs.spark.spark_trial import seconds_to_start  # loads pyspark

    subject = "a job of Spark"
    os.environ["JAVA_HOME"] = environ["JAVA_HOME"]
    if not (Path(environ["JAVA_HOME"]) / "bin" / "java").exists():
        return warn(subject, "Java's starter is not made yet, so it was not tried", _PREPARE)
    outcome = seconds_to_start()
    if isinstance(outcome, str):
        return fail(subject, outcome, "Look at Java and at memory above; --debug shows more.")
    return ok(subject, f"started, done and ended in {outcome:.1f} s")
