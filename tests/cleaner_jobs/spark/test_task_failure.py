"""What Spark 4.3.0 said of jobs that failed, shortened: one line of it is for a person."""

import pytest

from cleaner_jobs.spark.task_failure import PYTHON_DIED, TaskFailure, task_failure

CALL = """An error occurred while calling o60.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""
LOST = (
    "Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage "
    "0.0 failed 4 times, most recent failure: Lost task 1.3 in stage 0.0 (TID 7) (%s): "
)
NO_PYTHON = """\
java.io.IOException: Cannot run program "/opt/python9": error=2, No such file or directory
\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
Caused by: java.io.IOException: error=2, No such file or directory
\t... 28 more
"""
NO_DAEMON = """org.apache.spark.SparkException:
Error from python worker:
  /opt/python3: No module named cleaner_jobs
PYTHONPATH was:
  /opt/spark/python/lib/pyspark.zip:/opt/spark/python/lib/py4j-0.10.9.9-src.zip
org.apache.spark.SparkException: EOFException occurred while reading the port number from stdout.
\tat org.apache.spark.errors.SparkCoreErrors$.eofExceptionWhileReadPortNumberError(Spark.scala:55)
"""
RAISED = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/opt/lib/task.py", line 17, in work
    import storage
ModuleNotFoundError: No module named 'storage'
"""
OTHER_PYTHON = """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/opt/pyspark/worker_util.py", line 70, in check_python_version
    raise PySparkRuntimeError(
pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has \
different version: 3.9 than that in driver: 3.11, PySpark cannot run with different minor versions.
 SQLSTATE: 38000
"""
IDLE_WORKER_KILLED = """java.io.IOException: Stream closed
\tat java.base/java.lang.ProcessBuilder$NullOutputStream.write(ProcessBuilder.java:449)
\tat java.base/java.io.BufferedOutputStream.flush(BufferedOutputStream.java:142)
\tat org.apache.spark.api.python.PythonWorkerFactory.$anonfun$stopWorker$2(Factory.scala:527)
\tat org.apache.spark.api.python.PythonWorkerFactory.create(PythonWorkerFactory.scala:174)
"""
DAEMON_KILLED = """java.io.EOFException
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)
\tat org.apache.spark.api.python.PythonWorkerFactory.createSocket$1(PythonWorkerFactory.scala:215)
"""
SHUFFLE_CUT = """java.io.IOException: Connection reset by peer
\tat java.base/sun.nio.ch.FileDispatcherImpl.read0(Native Method)
\tat org.apache.spark.network.server.TransportChannelHandler.read(Handler.java:90)
\tat org.apache.spark.api.python.PythonRDD.compute(PythonRDD.scala:73)
"""
NO_SOCKET = """\
An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: java.net.BindException: No space left on device
\tat java.base/sun.nio.ch.UnixDomainSockets.bind0(Native Method)
\tat org.apache.spark.security.SocketAuthServer.<init>(SocketAuthServer.scala:60)
"""
NO_ROOM = """java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\tat org.apache.spark.api.python.PythonBroadcast.readExternal(PythonRDD.scala:700)
"""


@pytest.mark.parametrize(
    ("text", "host", "cause"),
    [
        (
            CALL + LOST % "10.0.0.5 executor 1" + NO_PYTHON,
            "10.0.0.5",
            'Cannot run program "/opt/python9": error=2, No such file or directory',
        ),
        (
            CALL + LOST % "host-b executor 12" + NO_DAEMON,
            "host-b",
            "/opt/python3: No module named cleaner_jobs",
        ),
        (CALL + LOST % "localhost executor driver" + RAISED, "", RAISED.splitlines()[-1]),
        (RAISED, "", "ModuleNotFoundError: No module named 'storage'"),
        (
            OTHER_PYTHON,
            "",
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in "
            "driver: 3.11, PySpark cannot run with different minor versions.",
        ),
        (LOST % "h executor 2" + "Python worker exited unexpectedly (crashed)", "h", PYTHON_DIED),
        (LOST % "h executor 2" + IDLE_WORKER_KILLED, "h", PYTHON_DIED),
        (LOST % "h executor 2" + DAEMON_KILLED, "h", PYTHON_DIED),
        (
            LOST % "h executor 2"
            + IDLE_WORKER_KILLED.replace("Stream closed", "Broken pipe (Write failed)"),
            "h",
            PYTHON_DIED,
        ),
        (LOST % "h executor 2" + SHUFFLE_CUT, "h", "Connection reset by peer"),
        (LOST % "h executor 2" + NO_ROOM, "h", "No space left on device"),
        (
            LOST % "h executor 2" + "ExecutorLostFailure (executor 2 exited): lost\nDriver stack",
            "h",
            "ExecutorLostFailure (executor 2 exited): lost",
        ),
        (NO_SOCKET, "", "No space left on device"),
        (CALL + "Caused by: " + NO_ROOM, "", "No space left on device"),
        ("", "", "it does not say why"),
    ],
)
def test_the_error_of_a_job_that_failed(text: str, host: str, cause: str) -> None:
    assert task_failure(text) == TaskFailure(host, cause)
