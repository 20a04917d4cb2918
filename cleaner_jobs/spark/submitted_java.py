"""Under `spark-submit` a SIGTERM ends Java, and Java is to end this process as the signal would.

Java is the parent there, and gets the signals of Airflow, systemd and timeout(1). A shutdown hook
in it does two things, one after the other:

1. It writes a byte to a pipe. A thread here reads it, and sends this process a SIGTERM.
2. It waits until this process has ended, since Java carries its output on.

A Java that is killed runs no hook: the pipe is closed without a byte, and the call that fails says
that Java has gone.
"""

import os
import signal
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

from cleaner_jobs.signals import deferred_signals
from cleaner_jobs.spark.java_cache import SUBMITTED_VARIABLE
from storage.errors import LogCompactionError

_ENDS = b"1"
_kept_open: list[int] = []  # until this process ends: so long does Java wait


class JavaIsGoneError(LogCompactionError):
    """Spark's Java does not answer. Nothing was changed."""

    reason_code = "spark-failed"


def connect_to_java() -> None:
    """Connect to the Java of spark-submit, and follow it to its end. Raise LogCompactionError."""
    try:
        SparkContext._ensure_initialized()
    except (Py4JError, ConnectionError, KeyError, ValueError) as error:
        raise JavaIsGoneError(
            f"the Java of spark-submit does not answer at {SUBMITTED_VARIABLE}="
            f"{os.environ.get(SUBMITTED_VARIABLE)}: it has ended. If spark-submit did not start "
            "this command, unset that variable"
        ) from error
    with suppress(OSError):  # no room for a pipe: then its end is noticed by the next call
        _follow_to_its_end(SparkContext._jvm)


def _follow_to_its_end(jvm: Any) -> None:
    """Let Java's orderly end be a SIGTERM here; once in a process, and where one is waited for."""
    if _kept_open or signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, signal.SIG_IGN):
        return
    with tempfile.TemporaryDirectory(prefix="compactor-") as directory, deferred_signals():
        told, alive = Path(directory) / "told", Path(directory) / "alive"
        for path in (told, alive):
            os.mkfifo(path, 0o600)
        reading = os.open(told, os.O_RDONLY | os.O_NONBLOCK)
        _kept_open.append(os.open(alive, os.O_RDWR))  # or Java would wait for somebody to write
        with suppress(Py4JError, TypeError):  # another Spark may have other insides
            _add_hook(jvm, str(told), str(alive))
    os.set_blocking(reading, True)
    threading.Thread(target=_wait, args=(reading,), name="Java's end", daemon=True).start()


def _add_hook(jvm: Any, pipe: str, alive: str) -> None:
    """RedirectThread copies what it reads: here a byte, and then nothing until the pipe's end."""
    java = jvm.java.io
    begun = java.ByteArrayInputStream(_ENDS)
    source = java.SequenceInputStream(begun, java.FileInputStream(alive))
    hook = jvm.org.apache.spark.util.RedirectThread(
        source, java.FileOutputStream(pipe), "compactor", False
    )
    jvm.java.lang.Runtime.getRuntime().addShutdownHook(hook)


def _wait(reading: int) -> None:
    if os.read(reading, 1) == _ENDS:
        os.kill(os.getpid(), signal.SIGTERM)
