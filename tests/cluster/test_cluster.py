"""Two attempts of a task at once, and executors that die: the result is that of a local run.

Slow workers make it certain which attempt loses, and that it is at work long after it has lost.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from cleaner_jobs.patience import VARIABLE
from cleaner_jobs.staging import STAGED_MARKER
from storage.file_names import UNFINISHED_SUFFIXES
from tests.cluster.standalone import HOSTS, PROJECT, Cluster, environment
from tests.kill import logs, processes, victim

pytestmark = pytest.mark.spark

SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.minTaskRuntime": "500ms",
    "spark.python.task.killTimeout": "60s",  # by default a loser's process has two seconds left
}
AS_OF = ("--as-of", str(logs.NOW_MS), "--any-clock")
LAUNCHER = (sys.executable, "-m", "compactor")
VICTIM = PROJECT / "tests" / "kill" / "victim.py"
SECONDS = 240.0
SHOWN = 6000  # characters of each end of what a run says


class Round(NamedTuple):
    """A round that is running on the cluster."""

    process: "subprocess.Popen[bytes]"
    log_dir: Path
    work_dir: Path
    status: Path
    output: Path

    def wait(self) -> None:
        self.process.wait(SECONDS)
        assert self.process.returncode == 0, self.said()

    def said(self) -> str:
        """The lines of the command itself, and the beginning and the end of all that was said."""
        text = self.output.read_text(errors="replace")
        own = [line for line in text.splitlines() if line.startswith("compactor: ")]
        ends = [text] if len(text) <= 2 * SHOWN else [text[:SHOWN], text[-SHOWN:]]
        return "\n…\n".join(["\n".join(own), *ends])


@contextmanager
def slowed(cluster: Cluster, brakes: Sequence[Path]) -> Iterator[None]:
    """Workers whose brake is on are slow."""
    cluster.trace.unlink(missing_ok=True)
    for brake in brakes:
        brake.touch()
    try:
        yield
    finally:
        for brake in brakes:
            brake.unlink()


@pytest.fixture
def start(
    cluster: Cluster, before: Path, topic_configs: Path, tmp_path: Path
) -> Iterator[Callable[..., Round]]:
    """Begins a round. What a test that failed leaves running ends with it, and frees its cores."""
    begun = list["subprocess.Popen[bytes]"]()

    def begin(conf: dict[str, str], held: bool = False) -> Round:
        """held: when all is rewritten, until its hold is removed."""
        log_dir, work_dir, status = (tmp_path / name for name in ("logs", "work", "status"))
        if held:
            victim.hold_of(status).touch()
        shutil.copytree(before, log_dir)
        work_dir.mkdir()
        words = [status, "run", log_dir, "--topic-configs", topic_configs]
        words += [*AS_OF, "--work-dir", work_dir]
        output = tmp_path / "output"
        with output.open("wb") as out:  # a file: nobody reads while a test waits
            process = subprocess.Popen(
                cluster.submit(VICTIM, *words, conf=conf),
                env=environment(),
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        begun.append(process)
        return Round(process, log_dir, work_dir, status, output)

    yield begin
    for process in begun:
        with process:  # waits for it
            if process.poll() is None:
                processes.kill(process.pid, (), processes.Target.ALL)
    wait_until_over(cluster)


def traced(cluster: Cluster) -> list[tuple[float, int, str]]:
    """When, in which process and to what a slow worker wrote."""
    if not cluster.trace.exists():
        return []
    fields = (line.split(" ", 2) for line in cluster.trace.read_text().splitlines())
    return [(float(when), int(pid), path) for when, pid, path in fields]


def phases(running: Round) -> dict[str, float]:
    """When each began, the last time."""
    return dict(victim.phases_of(running.status))


def wait_for(happened: Callable[[], object], running: Round, what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not happened():
        assert running.process.poll() is None, running.said()
        assert time.monotonic() < deadline, f"{what} does not happen"
        time.sleep(0.05)


def contents(log_dir: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(log_dir)): path.read_bytes()
        for path in log_dir.rglob("*")
        if path.is_file() and STAGED_MARKER not in path.name
    }


def left_over(log_dir: Path) -> list[str]:
    odd = (*UNFINISHED_SUFFIXES, ".tmp")
    names = [path.name for path in log_dir.rglob("*")]
    return [name for name in names if STAGED_MARKER in name or name.endswith(odd)]


def test_a_losing_attempt_that_goes_on_writing_harms_nothing(
    cluster: Cluster,
    start: Callable[..., Round],
    local: Path,
    before: Path,
    topic_configs: Path,
) -> None:
    with slowed(cluster, cluster.brakes[-1:]):
        running = start(SPECULATION, held=True)
        wait_for(lambda: victim.REWRITTEN in phases(running), running, "the end of the job")
        over = phases(running)[victim.REWRITTEN]
        wait_for(lambda: traced(cluster)[-1][0] > over, running, "a write of the loser")
        victim.hold_of(running.status).unlink()
        running.wait()
        assert contents(running.log_dir) == contents(local)
        assert contents(running.log_dir) != contents(before)
        wait_until_over(cluster)
    done = subprocess.run(
        [*LAUNCHER, "run", running.log_dir, "--topic-configs", topic_configs, *AS_OF],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert left_over(running.log_dir) == []


def wait_until_over(cluster: Cluster) -> None:
    """A losing task ends with its executor."""
    deadline = time.monotonic() + SECONDS
    while any(p.is_executor for s in cluster.sessions for p in processes.of_session(s)):
        assert time.monotonic() < deadline, "executors do not end"
        time.sleep(0.05)


def test_killed_workers_and_executors_are_made_up_for(
    cluster: Cluster, start: Callable[..., Round], local: Path
) -> None:
    with slowed(cluster, cluster.brakes):
        running = start({})
        wait_for(lambda: traced(cluster), running, "a slow task")
        _, first, path = traced(cluster)[0]
        os.kill(first, signal.SIGKILL)  # a Python worker; Spark tries its task again, anywhere
        wait_for(lambda: attempts_like(path, cluster) - {first}, running, "a second attempt")
        (second,) = attempts_like(path, cluster) - {first}
        os.kill(executor_of(second, cluster), signal.SIGKILL)
    running.wait()
    assert contents(running.log_dir) == contents(local)
    assert left_over(running.log_dir) == []
    assert os.listdir(running.work_dir) == []


@pytest.mark.parametrize("is_java", [False, True])
def test_a_stopped_worker_or_executor_ends_the_run_after_the_bound(
    is_java: bool, cluster: Cluster, start: Callable[..., Round], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "60")
    with slowed(cluster, cluster.brakes):
        running = start({})
        wait_for(lambda: traced(cluster), running, "a slow task")
        _, worker, _ = traced(cluster)[0]
        pid = executor_of(worker, cluster) if is_java else worker
        os.kill(pid, signal.SIGSTOP)
    try:
        code = running.process.wait(SECONDS)
        assert code == 1, running.said()
        who = "" if is_java else f" (process {worker} on {socket.gethostname()})"
        assert f"no task gives a sign of life{who}, and the run has waited for 60 s. " in (
            running.said()
        )
    finally:
        with suppress(ProcessLookupError):  # Spark ends it where it can
            os.kill(pid, signal.SIGKILL)


def attempts_like(staged: str, cluster: Cluster) -> set[int]:
    """The processes that have been at the same task as the one that wrote this staged file."""
    return {pid for _, pid, path in traced(cluster) if task_of(path) == task_of(staged)}


def task_of(staged: str) -> str:
    """The end of a staged file's name without the number of the attempt."""
    return staged.partition(STAGED_MARKER)[2].rpartition("-")[0]


def executor_of(worker: int, cluster: Cluster) -> int:
    """The process that a Python worker works for."""
    for session in cluster.sessions:
        here = processes.of_session(session)
        if worker in {process.pid for process in here}:
            (executor,) = (process.pid for process in here if process.is_executor)
            return executor
    raise AssertionError(f"process {worker} is no worker's of the cluster any more")


@pytest.fixture
def submitted(cluster: Cluster, before: Path, topic_configs: Path, tmp_path: Path) -> "Submitted":
    """Runs to their end a run of a copy of the logs."""
    shutil.copytree(before, tmp_path / "logs")

    def run(
        words: Sequence[object], conf: dict[str, str], **environ: str
    ) -> "subprocess.CompletedProcess[str]":
        rest = ["--topic-configs", topic_configs, *AS_OF]
        script = PROJECT / "compactor" / "__main__.py"
        return subprocess.run(
            cluster.submit(script, "run", *words, *rest, conf=conf),
            env={**environment(), **environ},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )

    return run


Submitted = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def refused(submitted: Submitted, before: Path, tmp_path: Path) -> "Refused":
    """The words that a run was refused with, which has changed nothing."""

    def run(words: Sequence[object], conf: dict[str, str], **environ: str) -> str:
        done = submitted(words, conf, **environ)
        assert done.returncode == 3, done.stdout + done.stderr
        assert contents(tmp_path / "logs") == contents(before)
        # spark-submit puts all that Python says there
        told = [line for line in done.stdout.splitlines() if line.startswith("compactor: ")]
        assert len(told) == 1 and told[0].endswith(" Nothing was changed."), done.stdout
        return told[0]

    return run


Refused = Callable[..., str]


def test_a_work_directory_that_executors_do_not_see_is_refused(
    refused: Refused, tmp_path: Path
) -> None:
    """/proc/self/cwd is another directory for each process."""
    told = refused([tmp_path / "logs", "--work-dir", "/proc/self/cwd"], {})
    assert told.startswith(f"compactor: executor on {socket.gethostname()}: /proc/self/cwd/")
    assert "/token: No such file or directory; --work-dir has to name a directory" in told


def test_a_log_directory_that_executors_do_not_see_is_refused(
    refused: Refused, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    told = refused(["/proc/self/cwd/logs", "--work-dir", tmp_path / "work"], {})
    assert told.startswith(f"compactor: executor on {socket.gethostname()}: /proc/self/cwd/logs/")
    assert ": No such file or directory; every executor has to reach the log directories" in told


ADVICE = (
    "; every executor needs this package and what it requires, as the driver has it, under the "
    "Python that PYSPARK_PYTHON names. "
)


def test_an_executor_without_python_is_refused(
    cluster: Cluster, refused: Refused, tmp_path: Path
) -> None:
    """Though the other one has it, and could do all the work."""
    (tmp_path / "work").mkdir()
    first, second = HOSTS
    python = cluster.control.parent / first / "python"  # two directories above its executors'
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    words = [tmp_path / "logs", "--work-dir", tmp_path / "work"]
    told = refused(words, {}, PYSPARK_PYTHON="../../python", PYSPARK_DRIVER_PYTHON=sys.executable)
    cause = 'Cannot run program "../../python": error=2, No such file or directory'
    assert told.startswith(f"compactor: executor on {second}: {cause}{ADVICE}")


def test_an_executor_whose_first_attempt_fails_and_the_next_does_not_is_taken(
    cluster: Cluster, submitted: Submitted, tmp_path: Path
) -> None:
    """As on a host that has no room for a process just then."""
    (tmp_path / "work").mkdir()
    failed = tmp_path / "failed"
    once = f'[ -e {failed} ] || {{ touch {failed}; echo "no room for a process" >&2; exit 1; }}\n'
    for host, before in zip(HOSTS, ("", once), strict=True):
        python = cluster.control.parent / host / "python_once"
        python.write_text(f'#!/bin/sh\n{before}exec {sys.executable} "$@"\n')
        python.chmod(0o755)
    words = [tmp_path / "logs", "--work-dir", tmp_path / "work", "--dry-run"]
    environ = {"PYSPARK_PYTHON": "../../python_once", "PYSPARK_DRIVER_PYTHON": sys.executable}
    done = submitted(words, {}, **environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert failed.exists()


def test_executors_without_the_package_are_refused(refused: Refused, tmp_path: Path) -> None:
    """They find another one of its name first."""
    (tmp_path / "work").mkdir()
    (tmp_path / "other" / "cleaner_jobs").mkdir(parents=True)
    (tmp_path / "other" / "cleaner_jobs" / "__init__.py").touch()
    words = [tmp_path / "logs", "--work-dir", tmp_path / "work"]
    conf = {"spark.python.daemon.module": "pyspark.daemon"}  # Spark's own
    told = refused(words, conf | {"spark.executorEnv.PYTHONPATH": str(tmp_path / "other")})
    on = f"compactor: executor on {socket.gethostname()}: "
    assert told.startswith(f"{on}ModuleNotFoundError: No module named 'cleaner_jobs.tasks'{ADVICE}")
