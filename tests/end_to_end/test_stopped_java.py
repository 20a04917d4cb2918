"""A Java that is stopped (SIGSTOP) ends a run after the bound, at whatever stage it is."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from cleaner_jobs.patience import VARIABLE
from demo.workload import write_log_dir
from tests.support.command_process import LAUNCHER, PROJECT

pytestmark = pytest.mark.spark

SECONDS = 200
BOUND = 12  # longer than Java takes to listen where the machine is busy
COMPACTED = ("--include", "orders", "--set", "cleanup.policy=compact")


@pytest.mark.parametrize("moment", ["", "start engine: done", "scan: done", "resolve: done"])
def test_it_is_named_and_ended(tmp_path: Path, moment: str) -> None:
    data, said = tmp_path / "data", tmp_path / "said"
    run, java = _run_until(moment, data, said, {**os.environ, VARIABLE: str(BOUND)})
    java.send_signal(signal.SIGSTOP)
    out, _ = run.communicate(timeout=SECONDS)
    told = json.loads(out.decode().splitlines()[-1])
    assert (told["status"], told["reason_code"]) == ("failed", "spark-failed")
    stopped = f"process {java.pid} (java) "
    assert f"waiting: {stopped}is stopped, and goes on at a SIGCONT" in said.read_text()
    assert f"{stopped}was stopped for {BOUND} s, and ended" in told["error"]
    assert list(data.rglob("*compactor*")) == []


@pytest.mark.parametrize("moment", ["start engine: done", "scan: done"])
def test_an_interrupt_does_not_wait_for_it(tmp_path: Path, moment: str) -> None:
    data, said = tmp_path / "data", tmp_path / "said"
    run, java = _run_until(moment, data, said, os.environ)  # which waits for ten minutes
    java.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=SECONDS)
    assert run.returncode == 130
    assert time.monotonic() - began < 50  # it took 180 s
    assert list(data.rglob("*compactor*")) == []
    assert not java.is_running() or java.status() == psutil.STATUS_ZOMBIE


def _run_until(
    moment: str, data: Path, said: Path, environ: Mapping[str, str]
) -> tuple["subprocess.Popen[bytes]", psutil.Process]:
    """Start a run on a log directory that is made; go on once it has said something.

    Returns:
        The run, and its Java.
    """
    write_log_dir(str(data), 60_000, int(time.time() * 1000))
    words = ["run", str(data), *COMPACTED, "--master", "local[1]", "--io-limit", "1MB/s"]
    with said.open("wb") as error:
        run = subprocess.Popen(
            [*LAUNCHER, *words],
            cwd=PROJECT,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=error,
        )
    java = _java_of(run.pid)
    deadline = time.monotonic() + SECONDS
    while moment not in said.read_text():
        assert run.poll() is None and time.monotonic() < deadline, said.read_text()
        time.sleep(0.02)
    return run, java


def _java_of(pid: int) -> psutil.Process:
    """The Java of the run, which is its child; the launcher's own is further down."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        for process in psutil.Process(pid).children():
            with suppress(psutil.NoSuchProcess):  # it has ended since
                if process.name() == "java":
                    return process
        time.sleep(0.02)
    raise AssertionError("no Java was started")
