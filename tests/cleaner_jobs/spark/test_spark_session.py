"""Spark starts quietly, on loopback, with warm workers; what spark-submit was given stands."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext

from cleaner_jobs.problems import StageFailedError
from cleaner_jobs.spark import spark_session
from cleaner_jobs.spark.environment import spark_home
from cleaner_jobs.spark.spark_session import JAVA_OPTIONS
from cleaner_jobs.spark.task_job import core_count

PROJECT = Path(__file__).parents[3]
PROBE = "tests.cleaner_jobs.spark.spark_probe"
STARTING_SECONDS = 300  # after the page cache has gone cold, Spark alone takes 40


def ended(command: list[object], **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        cwd=PROJECT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=STARTING_SECONDS,
        check=False,
    )


class OfJavaError(Exception):
    """As an exception of Java's: it is asked what it says, and that fails where it has gone."""

    def __str__(self) -> str:
        raise Py4JNetworkError("An error occurred while trying to connect")


def test_the_error_says_that_java_ended_while_it_was_asked_why() -> None:
    assert spark_session.cause_of_failure(OfJavaError()) == "Spark's Java process is gone"


def test_the_error_says_that_java_ended_before_the_first_job() -> None:
    class Context:
        @property
        def defaultParallelism(self) -> int:  # noqa: N802
            raise ConnectionRefusedError

    with pytest.raises(StageFailedError, match="first job: Spark's Java process is gone"):
        core_count(cast("SparkContext", Context()))


@pytest.mark.spark
def test_a_local_session_is_quiet_on_loopback_and_leaves_nothing(tmp_path: Path) -> None:
    probe = ended([sys.executable, "-m", PROBE, "local[1]", tmp_path])
    assert (probe.returncode, probe.stderr) == (0, "")
    told: dict[str, Any] = json.loads(probe.stdout)
    assert told["spark.master"] == "local[1]"
    assert told["spark.ui.enabled"] == "false"
    assert told["listening"] == ["127.0.0.1"]
    assert spark_session.DAEMON_MODULE in told["worker"]["daemon"]
    assert told["worker"]["numpy"] == "True"
    assert told["driver loads"] == []
    assert os.path.samefile(told["worker"]["python"], sys.executable)
    assert told["alive"] == 0
    left = [path.name for path in tmp_path.iterdir() if not path.is_socket()]
    assert left == [spark_session.LOG_NAME]


@pytest.mark.spark
def test_what_spark_submit_was_given_stands_and_the_rest_is_ours(tmp_path: Path) -> None:
    entry = tmp_path / "entry.py"
    entry.write_text(f"from {PROBE} import main\nmain('local[2]', {str(tmp_path)!r})\n")
    submit = Path(spark_home(os.environ)) / "bin" / "spark-submit"
    options = ["--master", "local[1]", "--conf", "spark.python.worker.reuse=false"]
    options += ["--conf", "spark.log.level=INFO"]
    probe = ended(
        [submit, *options, "--name", "theirs", entry],
        PYTHONPATH=str(PROJECT),
        PYSPARK_PYTHON=sys.executable,
        SPARK_LOCAL_IP="127.0.0.1",
    )
    assert probe.returncode == 0, probe.stderr
    assert " INFO DAGScheduler: " in probe.stderr
    told = json.loads(probe.stdout)
    assert told["spark.master"] == "local[1]"
    assert told["spark.app.name"] == "theirs"
    assert told["spark.python.worker.reuse"] == "false"
    assert told["spark.ui.enabled"] == "false"
    assert spark_session.DAEMON_MODULE in told["worker"]["daemon"]


def test_the_error_quotes_a_java_that_ends_at_once(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'Error: could not reserve enough space' >&2\nexit 1\n")
    java.chmod(0o755)
    probe = ended([sys.executable, "-m", PROBE, "local[1]", tmp_path], JAVA_HOME=str(tmp_path))
    assert probe.returncode == 1
    assert probe.stderr == (
        "SparkStartError: Spark did not start with master local[1]: "
        "Error: could not reserve enough space\n"
    )


@pytest.mark.spark
def test_the_error_for_a_master_that_is_none_has_one_line(tmp_path: Path) -> None:
    probe = ended([sys.executable, "-m", PROBE, "nonsense", tmp_path])
    assert probe.returncode == 1
    start = "SparkStartError: Spark did not start with master nonsense: Master must "
    assert probe.stderr.startswith(start)
    assert probe.stderr.count("\n") == 1


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[*,3]"])
def test_in_local_mode_the_driver_is_on_loopback(master: str, tmp_path: Path) -> None:
    options = spark_session.session_options(master, str(tmp_path), {})
    assert options["spark.driver.host"] == "127.0.0.1"
    assert options["spark.driver.bindAddress"] == "127.0.0.1"
    assert options["spark.python.daemon.module"] == spark_session.DAEMON_MODULE


@pytest.mark.parametrize(
    "master", ["local-cluster[2,1,1024]", "spark://host:7077", "yarn", "k8s://x"]
)
def test_a_cluster_keeps_its_own_addresses_and_workers(master: str, tmp_path: Path) -> None:
    options = spark_session.session_options(master, str(tmp_path), {})
    assert options["spark.master"] == master
    assert options.keys() == {"spark.master", *spark_session.ALWAYS}


@pytest.mark.parametrize("name", ["work", 'of "some" \\ one'])
def test_what_java_leaves_stands_in_the_work_directory(tmp_path: Path, name: str) -> None:
    """It goes with it, where Java is killed and cannot remove it."""
    options = spark_session.session_options("local", str(tmp_path / name), {})
    words = shlex.split(options[JAVA_OPTIONS])
    assert f"-Djava.io.tmpdir={tmp_path / name}" in words
    assert options["spark.local.dir"] == str(tmp_path / name)


@pytest.mark.parametrize(("length", "short_enough"), [(60, True), (61, False), (300, False)])
def test_sockets_of_the_file_system_where_their_names_fit(length: int, short_enough: bool) -> None:
    directory = "/" + "d" * (length - 1)
    options = spark_session.session_options("local[2]", directory, {})
    enabled, place = "true" if short_enough else None, directory if short_enough else None
    assert options.get("spark.python.unix.domain.socket.enabled") == enabled
    assert options.get("spark.python.unix.domain.socket.dir") == place


@pytest.mark.spark
def test_a_session_speaks_over_such_sockets() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        probe = ended([sys.executable, "-m", PROBE, "local[1]", short])
        assert (probe.returncode, probe.stderr) == (0, "")
        told = json.loads(probe.stdout)
        assert told["sockets"] > 0
        assert f" -Djava.io.tmpdir={short} " in told["java"]
