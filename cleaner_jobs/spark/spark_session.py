"""Starts Spark and ends it: the one place that sets Spark options.

There are three ways in. *Local*: Java is started here, with everything tuned for one machine. *A
cluster* by its master URL: Java is started here as the driver; how executors run is for `extra`.
*spark-submit*: Java is there already; whatever it was given on the command line or in
`spark-defaults.conf` stands, and only what it leaves open is set.

Java writes to `spark.log` in the work directory, so that the terminal stays the operator's.
"""

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import pairwise
from subprocess import TimeoutExpired
from typing import Any
from urllib.parse import quote

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException

from cleaner_jobs.first_use import SOURCES
from cleaner_jobs.machine_size import KillWatch
from cleaner_jobs.patience import end_processes, stopped_processes, why_ended
from cleaner_jobs.signals import deferred_signals
from cleaner_jobs.spark.callers_session import HAS_SESSION, LOCAL_DIR, has_session
from cleaner_jobs.spark.environment import (
    LOOPBACK_ADDRESS,
    SUBMITTED_VARIABLE,
    is_all_ours,
    is_local,
    own_environ,
    process_environ,
    settings_notice,
    start_failed,
)
from cleaner_jobs.spark.gateway import (
    Waiting,
    connect_to_java,
    start_gateway,
)
from cleaner_jobs.spark.local_size import kill_watch, local_size
from cleaner_jobs.spark.task_failure import PYTHON_DIED, task_failure
from cleaner_jobs.user_cache import text_of
from storage.files.local import LOCAL
from storage.user_home import has_name, home_of, name_of_user

_COMPLAINT = re.compile(r"error|exception|not found|unable|cannot|must ", re.IGNORECASE)
# Of Java and of Spark's log: they go on after it.
_WARNING = re.compile(r"\[warning\]|VM warning:|^WARNING:|\bWARN\b|^Picked up |^:: |^\t")
_JAVA_CLASS = re.compile(r'^(Exception in thread "[^"]*" )?([\w$]+\.)+[\w$]+(Exception|Error): ')
# With the cause in the line after the first one, and before the second one.
_NO_MACHINE = "Error occurred during initialization of VM"
_NO_MACHINE_CREATED = "Error: Could not create the Java Virtual Machine."


def cause_of_no_start(error: Exception, log_path: str) -> str:
    """Return one line for the operator: Java's own words if it left any, or else Python's."""
    java_exception = getattr(error, "java_exception", None)
    if java_exception is not None:
        message = java_exception.toString()
    elif isinstance(error, OSError) and error.filename:
        message = f"{error.filename}: {error.strerror}"
    else:
        message = _complaint(log_path) or str(error)
    first = next(filter(str.strip, message.splitlines()), type(error).__name__)
    if "stopped SparkContext" in first:  # what follows when it gave up in the background
        return "the master does not answer"
    return _JAVA_CLASS.sub("", first.strip()).removesuffix(".")


def _complaint(log_path: str) -> str | None:
    """Return what Java wrote before it ended; its virtual machine says it in two lines."""
    lines = (text_of(log_path) or "").splitlines()
    for before, line in pairwise(lines):
        if before == _NO_MACHINE or line == _NO_MACHINE_CREATED:
            return f"{before}: {line}"
    complaints = [line for line in lines if _COMPLAINT.search(line)]
    return next((line for line in complaints if not _WARNING.search(line)), None)


LOG_NAME = "spark.log"
DEFAULT_MASTER = "local[*]"
DAEMON_MODULE = "cleaner_jobs.spark.worker_daemon"
JAVA_EXIT_SECONDS = 120  # it takes half a second, on a machine that does not swap
INTERRUPTED_EXIT_SECONDS = 2  # for one that had only started

# Compiled by C1 alone: Java only schedules here, the work is in Python, and C2 takes seconds of
# processor time from it at every start (24 s become 12 s).
# The collector of one thread costs what it collects and no more, and the first few rounds fit its
# young generation and metaspace. A Java without memory ends: of one that goes on without a thread
# nothing would ever be heard.
LOCAL_JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=128m -XX:+ExitOnOutOfMemoryError"
)

ALWAYS = {
    "spark.submit.deployMode": "client",  # the driver is this process
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",  # we draw our own
    "spark.sql.adaptive.enabled": "false",  # it would merge partitions that we have balanced
    "spark.python.worker.reuse": "true",
    "spark.python.worker.faulthandler.enabled": "true",  # a kernel that crashes says where
}
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
DRIVER_MEMORY = "spark.driver.memory"
# Over TCP the answers of a worker wait 40 ms for an acknowledgement in every job (Nagle).
UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"
UNIX_SOCKETS_DIR = "spark.python.unix.domain.socket.dir"
MAX_SOCKETS_DIR_BYTES = 60  # Spark refuses more: with a name after it the system would
# What Java does for a job beside the job. A broadcast, which each job makes of its task, takes a
# buffer of that size; it has a few KB, and a session of ours ends before they come to anything.
SMALL_JOBS = {
    "spark.broadcast.blockSize": "128k",
    "spark.cleaner.referenceTracking": "false",
}
# Spark keeps 300 MiB of its heap free and refuses one of less than 450; none of our tasks needs it.
RESERVED_MEMORY, RESERVED_BYTES = "spark.testing.reservedMemory", 300 << 20
LOOPBACK = {
    "spark.driver.host": LOOPBACK_ADDRESS,
    "spark.driver.bindAddress": LOOPBACK_ADDRESS,
}
OF_PYTHON = re.compile(r"^(ModuleNotFound|Import)Error|different version|^Cannot run program")
JAVA_IS_GONE = "Spark's Java process is gone"

# What comes out of a call to Java that fails; of the last one, where Java has gone.
SPARK_ERRORS = (PySparkException, Py4JError, ConnectionError)

_watches: list[KillWatch] = []  # since the last start of Spark
_own_gateways: list[Any] = []  # the gateway of a Java that was started here, until it has ended
LEVEL = "spark.log.level"  # not set here: executors would take it, too
_SPARKS_OWN = "org/apache/spark/log4j2-defaults.properties"


def start_spark(
    master: str | None,
    app_name: str,
    work_dir: str,
    extra: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> SparkContext:
    """Start Spark. SparkStartError where that fails, and where this process has one already.

    To be asked before: `environment.require_fit`.

    master: None for spark-submit's own, or else all cores of this machine. extra: Spark options
    that win over those set here, but not over those of spark-submit. say: what it waits for.
    """
    if has_session():
        raise start_failed(None, HAS_SESSION)
    log_path = os.path.join(work_dir, LOG_NAME)
    handler = signal.getsignal(signal.SIGINT)
    _watches[:] = [kill_watch()]
    try:
        if SUBMITTED_VARIABLE in os.environ:
            conf = _submitted_conf(master, app_name, extra or {})
            return _quiet(SparkContext(conf=conf))
        with process_environ(own_environ(os.environ, is_all_ours(master, os.environ))):
            options = {
                **session_options(master or f"local[{local_size().tasks}]", work_dir, os.environ),
                **(extra or {}),
                "spark.app.name": app_name,
            }
            return _quiet(_start_java_and_context(options, log_path, say))
    except (*SPARK_ERRORS, OSError) as error:
        cause = cause_of_no_start(error, log_path) + (_kill_words() or _settings_words(master))
        _end_java()
        raise start_failed(master, cause) from error
    except KeyboardInterrupt:
        with deferred_signals():
            _end_java(INTERRUPTED_EXIT_SECONDS)
        raise
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)  # pyspark's calls Java first, busy or not


def _quiet(context: SparkContext) -> SparkContext:
    accumulators: Any = context._accumulatorServer
    accumulators.handle_error = lambda *_: None  # or it prints a traceback when Java goes away
    return context


def end_spark(context: SparkContext) -> None:
    """Stop Spark, and Java with it if we started it. The process can start another afterwards.

    Java ends when its standard input does, and stops the context and its workers on the way. To
    stop the context first takes a second more: pyspark waits for its own accumulator server.
    """
    if not _end_java():
        with suppress(*SPARK_ERRORS):  # Java has gone, and Spark with it
            context.stop()


def end_stopped_java() -> None:
    """End a Java of ours that is stopped, and workers of it that are: who ends waits for none."""
    gateway: Any = SparkContext._gateway
    if gateway is not None and gateway in _own_gateways:
        end_processes(pid for pid, _ in stopped_processes(top=[gateway.proc.pid]))


def _end_java(seconds: float = JAVA_EXIT_SECONDS) -> bool:
    """End the Java process if it was started here, killed after some seconds; whether it was.

    Under spark-submit it was not, nor where the caller has stopped a session of their own.
    """
    gateway: Any = SparkContext._gateway
    if gateway is None or gateway not in _own_gateways:
        return False
    end_stopped_java()
    gateway.shutdown()  # or objects that go away still send Java a farewell
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(seconds)
    except TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
    _forget(gateway)
    return True


def _forget(gateway: Any) -> None:
    """Leave pyspark as if it had never started: or it takes what has ended for the next session."""
    _own_gateways.remove(gateway)
    accumulators: Any = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
    if accumulators is not None:  # which answers within half a second; nobody waits for it
        threading.Thread(target=accumulators.shutdown, name="accumulators", daemon=True).start()
    SparkContext._active_spark_context = None
    SparkContext._gateway = SparkContext._jvm = None


def cause_of_failure(error: Exception) -> str:
    """Return why a job failed, in one line for the operator."""
    if isinstance(error, Py4JError | ConnectionError) and not isinstance(error, Py4JJavaError):
        return JAVA_IS_GONE + _kill_words()
    try:
        text = str(error)  # of an exception of Java's, which is asked for it
    except SPARK_ERRORS:
        return JAVA_IS_GONE + _kill_words()
    host, cause = task_failure(text)
    on = f" on {host}" if host else ""
    if cause == PYTHON_DIED:
        of_memory = _kill_words() or ", perhaps for want of memory"
        return f"a task's Python process died{on}{of_memory}"
    return f"a task failed{on}: {cause}{_python_words(cause)}"


def _python_words(cause: str) -> str:
    """Return what to say of the Python of the tasks, where that is another one."""
    context: Any = SparkContext._active_spark_context
    python = getattr(context, "pythonExec", sys.executable)
    if python == sys.executable or not OF_PYTHON.search(cause):
        return ""
    return f"; tasks ran under {python}, which PYSPARK_PYTHON or spark.pyspark.python names"


def _settings_words(master: str | None) -> str:
    """Return the user's own settings that counted; Spark shows those of spark-submit."""
    if SUBMITTED_VARIABLE in os.environ or is_all_ours(master, os.environ):
        return ""
    return settings_notice(os.environ)


def _kill_words() -> str:
    return (_watches[0].words() if _watches else "") or why_ended()


def session_options(master: str, work_dir: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a session whose Java is started here."""
    options = {**ALWAYS, "spark.master": master}
    of_user = _user_options(environ)
    if not is_local(master):
        return {**options, JAVA_OPTIONS: " ".join(of_user)} if of_user else options
    own_directory = os.path.abspath(work_dir)
    size = local_size()
    java_options = [
        LOCAL_JAVA_OPTIONS,
        f"-Xmn{size.young}",
        f"-Dlog4j2.configurationFile=file://{quote(_log4j_file())}",
        _quoted(f"-Djava.io.tmpdir={own_directory}"),  # where a Java that was killed leaves files
        *of_user,
    ]
    return {
        **options,
        **LOOPBACK,
        **SMALL_JOBS,
        DRIVER_MEMORY: size.heap,
        RESERVED_MEMORY: str(min(RESERVED_BYTES, size.heap_bytes // 3)),
        JAVA_OPTIONS: " ".join(java_options),
        LOCAL_DIR: own_directory,
        **_socket_options(own_directory),
        **_worker_options(),
    }


def _user_options(environ: Mapping[str, str]) -> list[str]:
    """Return what Java cannot find out of a user without a name: it says "?" for both."""
    if has_name():
        return []
    return [_quoted(f"-Duser.home={home_of(environ)}"), f"-Duser.name={name_of_user()}"]


def _quoted(option: str) -> str:
    """Quote an option as one word, for Spark's launcher and for a shell's rules."""
    escaped = option.replace("\\", r"\\").replace('"', r"\"")
    return f'"{escaped}"'


def _socket_options(directory: str) -> dict[str, str]:
    """Unix sockets between Java and Python, in a directory that only this user can enter.

    None where their names would be too long: then they speak over the loopback interface.
    """
    if len(os.fsencode(directory)) > MAX_SOCKETS_DIR_BYTES:
        return {}
    return {UNIX_SOCKETS: "true", UNIX_SOCKETS_DIR: directory}


def _worker_options() -> dict[str, str]:
    """Workers fork from a daemon that has the kernels loaded, out of this very source."""
    paths = [SOURCES, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "spark.python.daemon.module": DAEMON_MODULE,
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(paths),
    }


def _submitted_conf(master: str | None, app_name: str, extra: Mapping[str, str]) -> SparkConf:
    """Return what spark-submit was given, and ours where it says nothing."""
    connect_to_java()  # which holds the options of spark-submit
    conf = SparkConf()
    ours = {**ALWAYS, **extra, "spark.app.name": app_name}
    local = is_local(conf.get("spark.master", master or DEFAULT_MASTER) or "")
    quieten(conf, SparkContext._jvm, local)
    if local:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        ours = {**LOOPBACK, **_worker_options(), **ours}
    for key, value in {"spark.master": master or DEFAULT_MASTER, **ours}.items():
        conf.setIfMissing(key, value)
    return conf


def _start_java_and_context(
    options: Mapping[str, str], log_path: str, say: Callable[[str], None]
) -> SparkContext:
    if SparkContext._gateway is None:
        # Not to be cut off but where it waits: of a Java that has started nobody would know.
        with LOCAL.open_named(log_path, "ab") as log, deferred_signals() as let_signals_through:
            gateway = start_gateway(options, log, Waiting(say, let_signals_through))
            _own_gateways.append(gateway)
            SparkContext._ensure_initialized(gateway=gateway)
    conf = SparkConf(loadDefaults=False).setAll(list(options.items()))
    return SparkContext(conf=conf)


def _log4j_file() -> str:
    """Return the file in `conf/` of the source tree, or in the installed package."""
    installed = os.path.join(SOURCES, "cleaner_jobs", "conf", "log4j2.properties")
    return installed if LOCAL.exists(installed) else f"{SOURCES}/conf/log4j2.properties"


def quieten(conf: SparkConf, jvm: Any, is_local: bool) -> None:
    """Before there is a context, which says the most. On a cluster warnings are shown, too."""
    if conf.get(LEVEL) is not None:
        return
    with suppress(Py4JError, TypeError):  # another Spark may have other insides: then it says more
        utils = getattr(getattr(jvm.org.apache.spark.util, "Utils$"), "MODULE$")  # Scala's object
        utils.initializeLogIfNecessary(False)  # or Spark reads its settings once more after this
        log4j = jvm.org.apache.logging.log4j
        settings = log4j.LogManager.getContext(False).getConfiguration().getConfigurationSource()
        if _SPARKS_OWN in str(settings.getLocation()):
            utils.setLogLevel(log4j.Level.ERROR if is_local else log4j.Level.WARN)
