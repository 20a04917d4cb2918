"""Signals at the start of the local engine, and while its tasks work that never end.

As `test_bad_input_ends` has them on Spark: nothing is left, and no worker outlives its driver.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from cleaner_jobs.patience import VARIABLE
from demo.workload import write_log_dir
from tests.end_to_end.bad_input_logs import swapped_logs
from tests.end_to_end.test_bad_input_ends import AT_START, Ended, Running
from tests.kill.processes import LOCAL_LINGER_SECONDS, of_session, wait_until_gone
from tests.support.command_process import LAUNCHER, PROJECT, hangups
from tests.support.file_states import state_of

ENGINE = ("--engine", "local")
ENDS = [
    (AT_START, signal.SIGINT, "once"),
    ("scan", signal.SIGINT, "all"),
    ("rewrite", signal.SIGINT, "twice"),
    ("scan", signal.SIGTERM, "once"),
    ("rewrite", signal.SIGTERM, "all"),
    ("scan", signal.SIGHUP, "all"),
    ("rewrite", signal.SIGHUP, "once"),
]
SAID = {
    signal.SIGINT: (130, "interrupted"),
    signal.SIGTERM: (143, "terminated"),
    signal.SIGHUP: (129, "hung up: the terminal or connection is gone"),
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[object, Ended]]:
    """All of them, which wait for their tasks most of the time."""
    with hangups():
        running = {end: Running(tmp_path_factory.mktemp("ends"), end[0], ENGINE) for end in ENDS}
    try:
        yield {end: run.end(*end[1:]) for end, run in running.items()}
    finally:
        for run in running.values():
            run.kill()


@pytest.mark.parametrize(("stage", "number", "how"), ENDS)
def test_a_run_that_is_ended_leaves_nothing_behind_and_says_so(
    ended: dict[object, Ended], stage: str, number: signal.Signals, how: str
) -> None:
    found = ended[stage, number, how]
    code, line = SAID[number]
    assert found.code == code, found
    assert swapped_logs(found.before, found.after) in ((0, 1, 2) if stage == "rewrite" else (0,))
    assert found.left == []
    assert found.alive == []
    last = found.error.splitlines()[-1]
    assert last.startswith(f"compactor: {line}. ")
    assert "Traceback" not in found.error + found.out


def test_workers_that_stay_stopped_are_ended_after_the_bound_and_their_tasks_done(
    tmp_path: Path,
) -> None:
    data, said = tmp_path / "data", tmp_path / "said"
    write_log_dir(str(data), 60_000, int(time.time() * 1000))
    words = ["run", str(data), "--include", "orders", "--set", "cleanup.policy=compact"]
    with said.open("wb") as error:
        run = subprocess.Popen(
            [*LAUNCHER, *words, *ENGINE, "--io-limit", "1MB/s"],
            cwd=PROJECT,
            env={**os.environ, VARIABLE: "3"},
            stdout=subprocess.DEVNULL,
            stderr=error,
        )
    deadline = time.monotonic() + 100
    workers: list[psutil.Process] = []
    while "start engine: done" not in said.read_text() or not workers:
        assert run.poll() is None and time.monotonic() < deadline, said.read_text()
        time.sleep(0.02)
        with suppress(psutil.NoSuchProcess):  # a helper of the command's start that has ended
            workers = [
                worker for host in psutil.Process(run.pid).children() for worker in host.children()
            ]
    for worker in workers:
        worker.suspend()
    assert run.wait(100) == 0, said.read_text()
    assert "is stopped, and goes on at a SIGCONT" in said.read_text()
    assert "Its task is tried again" in said.read_text()
    assert list(data.rglob("*compactor*")) == []


def dry_run(data: Path, *more: str) -> list[str]:
    words = ["run", str(data), "--include", "orders", "--set", "cleanup.policy=compact"]
    return [*LAUNCHER, *words, *ENGINE, "--dry-run", *more]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory, on a machine whose kernels are compiled: then workers start early."""
    data = tmp_path_factory.mktemp("shop") / "data"
    write_log_dir(str(data), 60_000, int(time.time() * 1000))
    subprocess.run(dry_run(data), cwd=PROJECT, capture_output=True, check=True)
    return data


@pytest.mark.parametrize("has_workers", [False, True], ids=["after its start", "after theirs"])
@pytest.mark.parametrize("after_seconds", [0, 0.05, 0.2, 0.5])
def test_no_process_outlives_a_command_that_is_killed_while_it_starts(
    shop: Path, after_seconds: float, has_workers: bool
) -> None:
    """The process of the workers is started before anything else, and loads kernels by then."""
    before = state_of(shop)
    run = subprocess.Popen(
        dry_run(shop, "--io-limit", "1MB/s"),
        cwd=PROJECT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while has_workers and len(of_session(run.pid)) < 2:
        assert run.poll() is None, "it has started no workers"
        time.sleep(0.005)
    time.sleep(after_seconds)
    run.kill()
    assert run.wait(60) == -signal.SIGKILL
    assert wait_until_gone(run.pid, [], LOCAL_LINGER_SECONDS), of_session(run.pid)
    assert state_of(shop) == before
