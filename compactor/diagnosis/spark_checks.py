"""What would run a run's tasks, and what Spark needs: Java, jars, what is kept from run to run."""

import os
import platform
from collections.abc import Iterator, Mapping
from importlib import metadata

from cleaner_jobs.first_use import kernels_mark
from cleaner_jobs.local.worker_pool import process_count
from cleaner_jobs.spark.environment import SUBMITTED_VARIABLE, own_environ, set_variables, why_unfit
from cleaner_jobs.user_cache import cache_dir, is_kept
from compactor.diagnosis.checks import Check, Grade, fail, ok, warn
from compactor.errors import CleaningFailedError
from compactor.host.java import find_java, home_to_use
from compactor.host.machine import UNSET_IT, why_not_compiled
from compactor.host.printable import counted
from compactor.jobs.work_dir import open_work_dir
from storage.files.local import LOCAL

_PREPARE = "The first run does it, in half a minute; python -m compactor.prepare does it now."


def spark_checks(environ: Mapping[str, str], starts: bool) -> list[Check]:
    """Look at all of them. starts: also start Spark and let it do one small job."""
    try:
        java = find_java(dict(environ))
    except CleaningFailedError as error:
        advice = "Runs work without it, in processes of this host; Spark does not."
        engine = ok("engine", f"local, {_processes()}, since there is no Java for Spark")
        return [engine, warn("Java", str(error), advice), _spark(environ), _kernels(environ)]
    found = ok("Java", f"{java.major} at {java.home} ({java.origin})")
    by_java = dict(environ) | {"JAVA_HOME": str(home_to_use(java, cache_dir(environ)))}
    spark = _spark(environ)
    checks = [_engine(environ), found, spark, *_settings(environ), _kernels(environ)]
    if starts and spark.grade is not Grade.FAIL:  # it would say the same once more
        checks.append(_start(by_java))
    return checks


def _engine(environ: Mapping[str, str]) -> Check:
    """Say what would run the tasks of a run without options."""
    if SUBMITTED_VARIABLE in environ:
        return ok("engine", "spark, since this command was started by spark-submit")
    return ok("engine", f"local, {_processes()}; spark from 1 GiB of logs to read")


def _processes() -> str:
    return counted(process_count(), "process", "processes")


def _spark(environ: Mapping[str, str]) -> Check:
    unfit = why_unfit(environ, local=True)
    if unfit:
        return fail("Spark", unfit.problem, unfit.remedy)
    home = own_environ(environ, local=True)["SPARK_HOME"]
    return ok("Spark", f"{metadata.version('pyspark')} at {home}")


def _settings(environ: Mapping[str, str]) -> Iterator[Check]:
    """Check the settings of another Spark: a local run ignores them, a cluster's does not."""
    subject = "Spark's settings"
    if SUBMITTED_VARIABLE in environ:
        port = f"{SUBMITTED_VARIABLE}={environ[SUBMITTED_VARIABLE]}"
        yield warn(
            subject,
            f"{port}: a run takes the Java there for that of spark-submit, with its settings",
            "If spark-submit did not start this command, unset that variable.",
        )
        return
    found = set_variables(environ)
    if not found:
        return
    counting = [text for text, row in found if row.counts_on_cluster]
    unfit = why_unfit(environ, local=False)
    if unfit:
        yield warn(
            subject,
            f"{unfit.problem}: a run with --master and a cluster's URL does not start",
            f"{unfit.remedy} A run on this machine alone goes without it.",
        )
    elif counting:
        yield ok(subject, f"{'; '.join(counting)}: only for --master with a cluster's URL")
    ignored = [text for text, row in found if not row.counts_on_cluster]
    if ignored:
        yield ok(subject, f"{'; '.join(ignored)}: not used")


def _kernels(environ: Mapping[str, str]) -> Check:
    subject = "kernels"
    problem = why_not_compiled(environ)
    if problem:
        return warn(subject, problem, UNSET_IT)
    if is_kept(kernels_mark(environ)):
        return ok(subject, f"compiled for {platform.machine()}, numba {metadata.version('numba')}")
    return warn(subject, "not compiled yet for this source and this machine", _PREPARE)


def _start(environ: Mapping[str, str]) -> Check:
    from cleaner_jobs.spark.spark_trial import seconds_to_start  # loads pyspark

    subject = "a job of Spark"
    os.environ["JAVA_HOME"] = environ["JAVA_HOME"]
    if not LOCAL.exists(os.path.join(environ["JAVA_HOME"], "bin", "java")):
        return warn(subject, "Java's starter is not made yet, so it was not tried", _PREPARE)
    try:
        with open_work_dir(None, "doctor", LOCAL) as work_dir:
            outcome = seconds_to_start(work_dir)
    except CleaningFailedError as error:
        return fail(subject, str(error))
    if isinstance(outcome, str):
        return fail(subject, outcome, "Look at Java and at memory above; --debug shows more.")
    return ok(subject, f"started, done and ended in {outcome:.1f} s")
