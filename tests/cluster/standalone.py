"""Spark's standalone cluster from the pip package, started and stopped by process id.

The workers go by two names of this machine, 127.0.0.1 and localhost: Spark never puts a speculative
copy of a task on the host that it copies. Their Python workers find `slow/` first.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from cleaner_jobs.spark.class_archive import spark_home

PROJECT = Path(__file__).parents[2]
SLOW = Path(__file__).with_name("slow")
START_SECONDS = 120.0
STOP_SECONDS = 30.0
HOSTS = ("127.0.0.1", "localhost")
_DEPLOY = "org.apache.spark.deploy"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster."""

    url: str
    control: Path  # the hook in slow/sitecustomize.py looks here
    sessions: tuple[int, ...]  # of each worker with its executors

    @property
    def brakes(self) -> tuple[Path, ...]:
        """For each worker the file that makes it slow while it is there."""
        return tuple(self.control / host for host in HOSTS)

    @property
    def trace(self) -> Path:
        """A line of time, process and path for each write of a slow worker."""
        return self.control / "trace"

    def submit(self, script: Path, *words: object, conf: Mapping[str, str]) -> list[str]:
        """The command that runs a script with its words on this cluster."""
        options = {
            "spark.driver.host": HOSTS[0],
            "spark.driver.bindAddress": HOSTS[0],
            "spark.executor.memory": "512m",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # each has its share
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
            "spark.python.daemon.module": "cleaner_jobs.spark.worker_daemon",
            **conf,
        }
        given = [word for key, value in options.items() for word in ("--conf", f"{key}={value}")]
        submit = spark_home(os.environ) / "bin" / "spark-submit"
        return [str(submit), "--master", self.url, *given, str(script), *map(str, words)]


def environment() -> dict[str, str]:
    """What driver and daemons are started in."""
    return {
        **os.environ,
        "SPARK_LOCAL_IP": HOSTS[0],
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(PROJECT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[Cluster]:
    """Start a master and two workers of one core each, and stop them."""
    control = folder / "control"
    control.mkdir(parents=True)
    port, web_port, *worker_ports = _free_ports(2 + len(HOSTS))
    url = f"spark://{HOSTS[0]}:{port}"
    python_path = os.pathsep.join([str(SLOW), str(PROJECT)])
    with ExitStack() as running:
        web = ["--webui-port", str(web_port)]
        running.enter_context(
            _daemon(folder, "master", ["--host", HOSTS[0], "--port", str(port), *web], {})
        )
        sessions = []
        for host, web_port_of_it in zip(HOSTS, worker_ports, strict=True):
            words = ["--host", host, "--webui-port", str(web_port_of_it), "-c", "1", "-m", "1g"]
            words += ["-d", str(folder / host), url]
            hook = {"PYTHONPATH": python_path, "SLOW_BRAKE": str(control / host)}
            worker = running.enter_context(_daemon(folder, f"worker-{host}", words, hook))
            sessions.append(worker.pid)
        _wait_for_workers(f"http://{HOSTS[0]}:{web_port}/json/", len(HOSTS), folder)
        yield Cluster(url, control, tuple(sessions))


@contextmanager
def _daemon(
    folder: Path, name: str, words: list[str], extra: Mapping[str, str]
) -> "Iterator[subprocess.Popen[bytes]]":
    kind = name.partition("-")[0]
    start = [str(spark_home(os.environ) / "bin" / "spark-class")]
    argv = [*start, f"{_DEPLOY}.{kind}.{kind.title()}", *words]
    memory = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1"}
    with (folder / f"{name}.log").open("wb") as log:
        daemon = subprocess.Popen(
            argv,
            stdout=log,
            stderr=log,
            env={**environment(), **memory, **extra},
            start_new_session=True,
        )
    try:
        yield daemon
    finally:
        daemon.terminate()
        try:
            daemon.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
        shutil.rmtree(folder / name, ignore_errors=True)


def _wait_for_workers(page: str, count: int, folder: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    alive = 0
    while alive < count:
        if time.monotonic() > deadline:
            logs = "\n".join(path.read_text() for path in folder.glob("*.log"))
            raise AssertionError(f"{alive} of {count} workers are there:\n{logs[-4000:]}")
        time.sleep(0.2)
        try:
            with urlopen(page, timeout=5) as answer:
                alive = json.load(answer)["aliveworkers"]
        except (OSError, json.JSONDecodeError):  # it answers before it has anything to say
            continue


def _free_ports(count: int) -> list[int]:
    """All at once, so that no two are the same."""
    with ExitStack() as probes:
        found = []
        for _ in range(count):
            probe = probes.enter_context(socket.socket())
            probe.bind((HOSTS[0], 0))
            found.append(int(probe.getsockname()[1]))
    return found
