"""The prestarted daemon takes the place of Java's where it may, and outlives nobody."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from cleaner_jobs.spark import prestarted_daemon
from cleaner_jobs.spark.gateway import LIKE_JAVAS, PrestartedDaemon, start_daemon
from cleaner_jobs.spark.prestarted_daemon import SOCKET_VARIABLE

PROJECT = Path(__file__).parents[3]
LOADING_SECONDS = 120  # two, on a machine with nothing else to do
AS_LOADED = {"PATH": "/bin", "PYTHONPATH": "/source", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
STARTER = """
import os, sys, time
from cleaner_jobs.spark.gateway import start_daemon
early = start_daemon(sys.argv[1], os.environ, sys.stderr)
print(early.process.pid, flush=True)
time.sleep(600)
"""


def environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if "PYTEST" not in name}


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """As long as names of sockets may be."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        yield Path(directory)


@pytest.fixture
def early(short_dir: Path) -> Iterator[PrestartedDaemon]:
    with (short_dir / "log").open("wb") as log:
        daemon = start_daemon(str(short_dir), environ(), log)
    yield daemon
    daemon.end()


def is_gone(pid: int) -> bool:
    try:
        psutil.Process(pid).wait(LOADING_SECONDS)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return False
    return True


def javas_daemon(early: PrestartedDaemon, **others: str) -> "subprocess.Popen[bytes]":
    """As Java starts it."""
    return subprocess.Popen(
        [sys.executable, "-m", "cleaner_jobs.spark.worker_daemon", "pyspark.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=PROJECT,
        env={
            **environ(),
            **LIKE_JAVAS,
            "PYTHONPATH": f"/spark/py4j.zip:{PROJECT}:{os.environ.get('PYTHONPATH', '')}",
            "SPARK_REUSE_WORKER": "1",
            SOCKET_VARIABLE: early.socket_path,
            **others,
        },
    )


def port_of(daemon: "subprocess.Popen[bytes]") -> int:
    assert daemon.stdout is not None
    return int.from_bytes(daemon.stdout.read(4))


def listener_on(port: int) -> int:
    listening = (
        connection.pid
        for connection in psutil.net_connections("tcp4")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
    )
    pid = next(listening)
    assert isinstance(pid, int)
    return pid


def test_it_takes_the_place_of_javas_and_ends_with_its_input(early: PrestartedDaemon) -> None:
    with javas_daemon(early) as daemon:
        assert listener_on(port_of(daemon)) == early.process.pid
        assert daemon.poll() is None, "Java watches this one"
        assert daemon.stdin is not None
        daemon.stdin.close()
        early.process.wait(LOADING_SECONDS)
        assert daemon.wait(LOADING_SECONDS) == 0


def test_when_it_ends_the_one_that_java_watches_ends(early: PrestartedDaemon) -> None:
    with javas_daemon(early) as daemon:
        port_of(daemon)
        early.process.kill()
        assert daemon.wait(LOADING_SECONDS) == 0


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "NUMBA_CPU_NAME"])
def test_under_other_variables_javas_own_does_the_work(name: str, early: PrestartedDaemon) -> None:
    with javas_daemon(early, **{name: "generic"}) as daemon:
        assert listener_on(port_of(daemon)) == daemon.pid
        assert early.process.wait(LOADING_SECONDS) == 0


def test_if_it_has_died_javas_own_does_the_work(early: PrestartedDaemon) -> None:
    early.process.kill()
    early.process.wait()
    with javas_daemon(early) as daemon:
        assert listener_on(port_of(daemon)) == daemon.pid


def test_it_ends_when_nobody_asks_for_it(early: PrestartedDaemon) -> None:
    assert early.process.stdin is not None
    early.process.stdin.close()
    assert early.process.wait(LOADING_SECONDS) == 0


def test_it_ends_with_the_driver_that_was_killed(short_dir: Path) -> None:
    driver = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(short_dir), str(PROJECT)],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
    )
    assert driver.stdout is not None
    pid = int(driver.stdout.readline())
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    assert is_gone(pid)


@pytest.mark.parametrize(
    "changed",
    [
        {"OMP_NUM_THREADS": "2"},
        {"PYTHONHASHSEED": "random"},
        {"PYTHONPATH": "/spark:/another"},
        {"NUMBA_DISABLE_JIT": "1"},
        {"LD_PRELOAD": "x.so"},
    ],
)
def test_other_variables_make_it_another(changed: dict[str, str]) -> None:
    assert not prestarted_daemon.is_same(AS_LOADED, {**AS_LOADED, **changed})


def test_a_missing_variable_makes_it_another() -> None:
    assert not prestarted_daemon.is_same(
        AS_LOADED, {name: AS_LOADED[name] for name in AS_LOADED if name != "OMP_NUM_THREADS"}
    )


def test_what_spark_tells_its_workers_makes_it_no_other() -> None:
    of_spark = {
        "SPARK_REUSE_WORKER": "1",
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        SOCKET_VARIABLE: "x",
    }
    wanted = {**AS_LOADED, **of_spark, "PYTHONPATH": "/spark/py4j.zip:/source:/more"}
    assert prestarted_daemon.is_same(AS_LOADED, wanted)
