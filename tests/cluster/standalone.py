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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from cleaner_jobs.spark.environment import spark_home
from tests.support.spark_submit import spark_submit

PROJECT = Path(__file__).parents[2]
SLOW = Path(__file__).with_name("slow")
START_SECONDS = 120.0
STOP_SECONDS = 30.0
HOSTS = ("127.0.0.1", "localhost")
Wrap = Mapping[str, Sequence[str]]
NOTHING: Wrap = {}
QUICK_START = "-XX:TieredStopAtLevel=1"  # none lives long enough for more
_DEPLOY = "org.apache.spark.deploy"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster."""

    url: str
    web_port: int  # of the master
    folder: Path
    sessions: list[int]  # of each worker with its executors

    @property
    def control(self) -> Path:
        """The hook in slow/sitecustomize.py looks here."""
        return self.folder / "control"

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
            "spark.driver.extraJavaOptions": QUICK_START,
            "spark.executor.extraJavaOptions": QUICK_START,
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # each has its share
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
            "spark.python.daemon.module": "cleaner_jobs.spark.worker_daemon",
            **conf,
        }
        return spark_submit(script, *words, master=self.url, conf=options)


def environment() -> dict[str, str]:
    """What driver and daemons are started in."""
    return {
        **os.environ,
        "SPARK_LOCAL_IP": HOSTS[0],
        "SPARK_LAUNCHER_OPTS": QUICK_START,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(PROJECT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@contextmanager
def standalone_cluster(
    folder: Path,
    environ: Mapping[str, str] | None = None,
    wrap: Wrap = NOTHING,
    hosts: Sequence[str] = HOSTS,
) -> Iterator[Cluster]:
    """Start a master and a worker of one core for each host, and stop them.

    environ: what they are started in; by default they have this project, and a hook that makes
    them slow. wrap: what the worker of a host is started by.
    """
    control = folder / "control"
    control.mkdir(parents=True)
    port, web_port = _free_ports(2)
    cluster = Cluster(f"spark://{HOSTS[0]}:{port}", web_port, folder, [])
    with ExitStack() as running:
        words = ["--host", HOSTS[0], "--port", str(port), "--webui-port", str(web_port)]
        of_all = environment() if environ is None else environ
        running.enter_context(_daemon(folder, "master", words, of_all))
        workers = [another_worker(cluster, host, environ, wrap.get(host, ())) for host in hosts]
        for worker in workers:
            running.enter_context(worker)
        wait_for_workers(cluster, len(hosts))
        yield cluster


@contextmanager
def another_worker(
    cluster: Cluster, host: str, environ: Mapping[str, str] | None = None, by: Sequence[str] = ()
) -> Iterator[None]:
    """Start a worker of one core, and stop it."""
    (web_port,) = _free_ports(1)
    words = ["--host", host, "--webui-port", str(web_port), "-c", "1", "-m", "1g"]
    words += ["-d", str(cluster.folder / host), cluster.url]
    if environ is None:
        path = os.pathsep.join([str(SLOW), str(PROJECT)])
        hook = {"PYTHONPATH": path, "SLOW_BRAKE": str(cluster.control / host)}
        environ = {**environment(), **hook}
    with _daemon(cluster.folder, f"worker-{host}", words, environ, by) as worker:
        cluster.sessions.append(worker.pid)
        yield


@contextmanager
def _daemon(
    folder: Path,
    name: str,
    words: list[str],
    environ: Mapping[str, str],
    by: Sequence[str] = (),
) -> "Iterator[subprocess.Popen[bytes]]":
    kind = name.partition("-")[0]
    start = [str(Path(spark_home(os.environ)) / "bin" / "spark-class")]
    argv = [*by, *start, f"{_DEPLOY}.{kind}.{kind.title()}", *words]
    memory = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": QUICK_START}
    with (folder / f"{name}.log").open("wb") as log:
        daemon = subprocess.Popen(
            argv,
            stdout=log,
            stderr=log,
            env={**environ, **memory},
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


def wait_for_workers(cluster: Cluster, count: int) -> None:
    """Until so many are there."""
    page = f"http://{HOSTS[0]}:{cluster.web_port}/json/"
    deadline = time.monotonic() + START_SECONDS
    alive = 0
    while alive < count:
        if time.monotonic() > deadline:
            logs = "\n".join(path.read_text() for path in cluster.folder.glob("*.log"))
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
