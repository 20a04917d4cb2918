"""Workers are processes that die alone, are named when they die, and end with their driver."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cleaner_jobs import machine_size
from cleaner_jobs.local import worker_pool
from cleaner_jobs.local.worker_host import Failed, Work
from cleaner_jobs.local.worker_pool import WorkerDiedError, WorkerPool, Workers, process_count
from cleaner_jobs.machine_size import MIB, Limit, Memory
from cleaner_jobs.messages import SCAN, save_task, task_file
from cleaner_jobs.patience import processes_below
from storage.errors import CleaningFailedError, ConfigError
from tests.support.command_process import PROJECT
from tests.support.local_round import settings_in

PATIENCE_SECONDS = 60.0


def until(what: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.01)


def pids_of(pool: WorkerPool, count: int) -> list[int]:
    """The workers, once all are there."""
    until(lambda: len([*processes_below([pool.host_pid])]) == count + 1)
    _, *pids = processes_below([pool.host_pid])
    return pids


def is_there(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def no_task(work_dir: Path, number: int = 0) -> Work:
    """A task without any work."""
    settings = settings_in(work_dir, 0)
    save_task(task_file(str(work_dir), SCAN, number), {"settings": settings, "stretches": []})
    return Work(str(work_dir), SCAN, number, f"scan-{number}-1")


def each_has_done_a_task(pool: WorkerPool, work_dir: Path) -> None:
    """Let no worker be stopped in its first steps, before it is bound to its host."""
    count = pool.idle
    for number in range(count):
        pool.give(no_task(work_dir, number))
    while pool.idle < count:
        list(pool.answers(1))


def test_tasks_are_done_and_a_task_that_raises_an_error_says_which(tmp_path: Path) -> None:
    with Workers(2) as workers:
        pool = workers.pool()
        good, bad = no_task(tmp_path), Work(str(tmp_path), SCAN, 7, "scan-7-1")
        pool.give(good)
        pool.give(bad)
        assert (pool.idle, list(pool.unfinished)) == (0, [good, bad])
        answers: dict[Work, object] = {}
        while len(answers) < 2:
            answers |= {answer.work: answer.rows for answer in pool.answers(1)}
        assert pool.idle == 2
        failed = answers[bad]
        assert answers[good] == []
        assert isinstance(failed, Failed)
        assert failed.cause.startswith("FileNotFoundError: ")
        assert "load_task" in failed.traceback


def test_a_worker_that_dies_is_named_with_its_signal(tmp_path: Path) -> None:
    with Workers(2) as workers:
        pool = workers.pool()
        for pid in pids_of(pool, 2):
            os.kill(pid, signal.SIGSTOP)
        pool.give(no_task(tmp_path))
        for pid in pids_of(pool, 2):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(WorkerDiedError, match=r"^a worker process was ended by SIGKILL$"):
            list(pool.answers(PATIENCE_SECONDS))


def test_where_the_process_of_the_workers_dies_they_end_with_it(tmp_path: Path) -> None:
    with Workers(2) as workers:
        pool = workers.pool()
        pids = pids_of(pool, 2)
        each_has_done_a_task(pool, tmp_path)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        pool.give(no_task(tmp_path, 2))
        os.kill(pool.host_pid, signal.SIGKILL)
        with pytest.raises(WorkerDiedError, match=r"^the workers' process was ended by SIGKILL$"):
            list(pool.answers(PATIENCE_SECONDS))
        until(lambda: not any(map(is_there, pids)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_to_the_whole_group_are_the_drivers_affair(
    tmp_path: Path, number: signal.Signals
) -> None:
    with Workers(1) as workers:
        pool = workers.pool()
        [worker] = pids_of(pool, 1)
        for pid in (worker, pool.host_pid):
            os.kill(pid, number)
        pool.give(no_task(tmp_path))
        assert [answer.rows for answer in pool.answers(PATIENCE_SECONDS)] == [[]]


def test_close_ends_workers_that_are_stopped_too(tmp_path: Path) -> None:
    workers = Workers(2)
    pool = workers.pool()
    pids = pids_of(pool, 2)
    os.kill(pids[0], signal.SIGSTOP)
    pool.give(no_task(tmp_path))
    workers.close()
    assert not any(map(is_there, [*pids, pool.host_pid]))
    workers.close()


def test_two_calls_at_once_do_not_share_workers() -> None:
    workers = Workers(1)
    message = r"^workers: are in use by another call: give each its own$"
    with workers.in_use(), pytest.raises(ConfigError, match=message), workers.in_use():
        pass
    with workers.in_use():
        pass


def test_a_forked_child_starts_its_own_and_leaves_its_parents_alone(tmp_path: Path) -> None:
    with Workers(1) as workers:
        pool = workers.pool()
        [worker] = pids_of(pool, 1)
        child = os.fork()
        if child == 0:
            own = workers.pool()
            is_other = own is not pool and own.host_pid != pool.host_pid
            workers.close()
            os._exit(0 if is_other else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert is_there(worker)
        pool.give(no_task(tmp_path))
        assert [answer.rows for answer in pool.answers(PATIENCE_SECONDS)] == [[]]


def test_without_a_python_to_start_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    message = "no worker process can be started: /nowhere/python: No such file or directory"
    with pytest.raises(CleaningFailedError, match=f"^{message}$"):
        Workers(2).pool()


@pytest.mark.parametrize(
    ("limit", "cores", "expected"),
    [
        (None, 64, 64),
        (16384 * MIB, 4, 4),
        (2000 * MIB, 8, 4),  # 300 of the driver, and 400 of each worker
        (100 * MIB, 8, 1),  # the least that works
    ],
)
def test_there_is_a_process_for_each_core_as_far_as_memory_suffices(
    monkeypatch: pytest.MonkeyPatch, limit: int | None, cores: int, expected: int
) -> None:
    found = None if limit is None else Limit(limit, "/sys/fs/cgroup")
    monkeypatch.setattr(worker_pool, "memory", lambda: Memory(1 << 40, 1 << 40, found))
    monkeypatch.setattr(worker_pool, "cores", lambda: cores)
    assert process_count() == expected
    assert machine_size.WORKER_BYTES == 400 * MIB


# What starts workers, in each of the ways in which a driver may run.
SCRIPT = """
import os, sys, time
from cleaner_jobs.local.worker_pool import Workers
from cleaner_jobs.patience import processes_below
print("main runs", flush=True)
workers = Workers(2)
pool = workers.pool()
while len(pids := [*processes_below([pool.host_pid])]) < 3:
    time.sleep(0.01)
BESIDE
print(*pids, flush=True)
time.sleep(100)
"""
DAEMONIC = """
import multiprocessing
process = multiprocessing.get_context("fork").Process(target=exec, args=(SCRIPT, {}), daemon=True)
process.start()
process.join()
"""
BESIDE_THREADS = """
import threading, time
for _ in range(8):
    threading.Thread(target=lambda: [time.sleep(0.001) for _ in iter(int, 1)], daemon=True).start()
exec(SCRIPT, {})
"""
PLAIN = "exec(SCRIPT, {})"
FORKING = "os.fork() or time.sleep(3) or os._exit(0)"  # holds what the driver had open


@pytest.mark.parametrize("from_input", [False, True])
@pytest.mark.parametrize("beside", ["", FORKING])
@pytest.mark.parametrize("way", [PLAIN, DAEMONIC, BESIDE_THREADS])
def test_no_worker_outlives_a_driver_that_is_killed_however_it_was_started(
    tmp_path: Path, way: str, beside: str, from_input: bool
) -> None:
    """Nor does a worker run the driver's main module, which has no guard, once more."""
    script = tmp_path / "script.py"
    script.write_text(f"SCRIPT = {SCRIPT.replace('BESIDE', beside)!r}\n{way}")
    with (
        open(script if from_input else os.devnull) as given,
        subprocess.Popen(
            [sys.executable, *([] if from_input else [script])],
            stdin=given,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
        ) as driver,
    ):
        assert driver.stdout is not None
        assert driver.stdout.readline() == "main runs\n"
        pids = [int(word) for word in driver.stdout.readline().split()]
        assert all(map(is_there, pids))
        host, *_ = pids
        os.kill(parent_of(host), signal.SIGKILL)
        until(lambda: not any(map(is_there, pids)))
        driver.kill()
        assert driver.stdout.read() == "", "the main module was run once"


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("after_seconds", [0, 0.05, 0.2])
def test_the_process_of_the_workers_ends_while_it_loads_too(
    tmp_path: Path, after_seconds: float
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import time\nfrom cleaner_jobs.local.worker_pool import WorkerPool\n"
        "print(WorkerPool(2).host_pid, flush=True)\ntime.sleep(100)\n"
    )
    with subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
    ) as driver:
        assert driver.stdout is not None
        host = int(driver.stdout.readline())
        time.sleep(after_seconds)
        driver.kill()
        until(lambda: not is_there(host))


def test_a_pool_that_is_closed_while_it_loads_is_gone() -> None:
    workers = Workers(2)
    host = workers.pool().host_pid
    workers.close()
    assert not is_there(host)
    assert workers._pool is None
