"""No wait is for ever: each is said, ends after a bound, and names what was waited for."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark import SparkContext

from cleaner_jobs import patience
from cleaner_jobs.patience import (
    Wait,
    bound_seconds,
    processes_below,
    stopped_processes,
)
from cleaner_jobs.spark import spark_session
from cleaner_jobs.spark.task_job import ExecutorWatch, NoExecutorError


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A time that is given: its only entry."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(None, 600), ("30", 30), ("0", 600), ("-1", 600), ("soon", 600), ("inf", 600), ("nan", 600)],
)
def test_the_bound_is_ten_minutes_unless_a_variable_says_otherwise(
    value: str | None, seconds: float
) -> None:
    assert bound_seconds({} if value is None else {patience.VARIABLE: value}) == seconds


def test_a_wait_is_said_after_15_seconds_and_ends_at_the_bound(clock: list[float]) -> None:
    said: list[str] = []
    wait = Wait(said.append, 60)
    reached = None
    for second in range(1, 100):
        clock[0] = float(second)
        if wait.look("nobody comes"):
            reached = second
            break
        assert bool(said) == (second >= 15)
    assert reached == 60
    assert said == ["waiting: nobody comes. The run ends after 60 s (COMPACTOR_WAIT_SECONDS)"]


def test_time_in_which_the_driver_was_stopped_does_not_count(clock: list[float]) -> None:
    wait = Wait(lambda _: None, 60)
    clock[0] = 1.0
    assert not wait.look("a cause")
    clock[0] = 4000.0  # as behind kill -STOP, and kill -CONT an hour later
    assert not wait.look("a cause")


def test_a_wait_that_was_over_begins_anew(clock: list[float]) -> None:
    wait = Wait(lambda _: None, 60)
    for second in range(1, 200):
        clock[0] = float(second)
        assert not wait.look(None if second % 50 == 0 else "a cause")


@pytest.mark.parametrize("has_children", [True, False])
def test_a_stopped_process_of_this_run_is_found_and_no_other(
    has_children: bool, tmp_path: Path
) -> None:
    """Also where the kernel lists no children (CONFIG_PROC_CHILDREN)."""

    def process(pid: int, parent: int, state: str, name: str = "java") -> None:
        thread = tmp_path / str(pid) / "task" / str(pid)
        thread.mkdir(parents=True)
        (tmp_path / str(pid) / "stat").write_text(f"{pid} ({name}) {state} {parent} 1 1 0 -1\n")
        if has_children:
            (thread / "children").touch()
            if (tmp_path / str(parent)).exists():
                with (tmp_path / str(parent) / "task" / str(parent) / "children").open("a") as file:
                    file.write(f"{pid} ")

    own = os.getpid()
    process(own, 1, "R", "python3")
    process(70_001, own, "S")
    process(70_002, 70_001, "T", "a (b) c")  # below one that is not stopped
    process(70_003, 1, "T")  # somebody else's
    (tmp_path / "70004").mkdir()  # it has just ended
    assert stopped_processes(str(tmp_path)) == [(70_002, "a (b) c")]


def test_the_processes_below_one_are_those_of_its_threads_too() -> None:
    found: list[list[int]] = []
    over = threading.Event()

    def start_and_wait() -> None:
        with subprocess.Popen(["sleep", "1000"]) as child:
            found.append([*processes_below([os.getpid()])])
            found.append([os.getpid(), child.pid])
            child.kill()
        over.set()

    threading.Thread(target=start_and_wait, daemon=True).start()
    assert over.wait(60)
    assert set(found[1]) <= set(found[0])


def test_one_that_stays_stopped_is_ended_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(patience.VARIABLE, "0.1")
    monkeypatch.setattr(patience, "LOOK_SECONDS", 0.05)
    said: list[str] = []
    with (
        patience.ending_stopped_processes(said.append),
        subprocess.Popen(["sleep", "100"]) as sleeping,
    ):
        sleeping.send_signal(signal.SIGSTOP)
        assert sleeping.wait(60) == -signal.SIGKILL
    named = f"process {sleeping.pid} (sleep)"
    assert said[0].startswith(f"waiting: {named} is stopped, and goes on at a SIGCONT")
    gone = spark_session.cause_of_failure(ConnectionRefusedError())
    assert gone == f"Spark's Java process is gone: {named} was stopped for 0 s, and ended"
    with patience.ending_stopped_processes(said.append):
        pass
    assert patience.why_ended() == ""


def test_a_child_that_was_started_before_and_is_the_runs_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(patience.VARIABLE, "0.1")
    monkeypatch.setattr(patience, "LOOK_SECONDS", 0.05)
    said: list[str] = []
    with (
        subprocess.Popen(["sleep", "100"]) as early,
        patience.ending_stopped_processes(said.append, own=[early.pid]),
    ):
        early.send_signal(signal.SIGSTOP)
        assert early.wait(60) == -signal.SIGKILL
    assert said[0].startswith(f"waiting: process {early.pid} (sleep) is stopped")


def test_a_stopped_child_of_the_caller_and_what_it_starts_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(patience.VARIABLE, "0.1")
    monkeypatch.setattr(patience, "LOOK_SECONDS", 0.02)
    said: list[str] = []
    with subprocess.Popen(
        ["sh", "-c", "read line; sleep 100 & echo $!; wait"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        with patience.ending_stopped_processes(said.append):
            child.stdin.write("start\n")
            child.stdin.flush()
            below = int(child.stdout.readline())
            os.kill(below, signal.SIGSTOP)
            child.send_signal(signal.SIGSTOP)
            deadline, both = time.monotonic() + 60, sorted([child.pid, below])
            while [pid for pid, _ in patience.stopped_processes()] != both:
                assert time.monotonic() < deadline, "they are not stopped"
                time.sleep(0.01)
            time.sleep(1)  # ten times the bound
        os.killpg(child.pid, signal.SIGKILL)
    assert said == []
    assert patience.why_ended() == ""


class Context:
    """As a SparkContext on a cluster."""

    master = "spark://there:7077"

    def __init__(self, executors: int) -> None:
        infos = [object()] * (1 + executors)
        tracker = SimpleNamespace(getExecutorInfos=lambda: infos)
        self._jsc = SimpleNamespace(sc=lambda: SimpleNamespace(statusTracker=lambda: tracker))


class Now:
    """A thread that does its work at once."""

    def __init__(self, target: Any, **_: object) -> None:
        self.start, self.is_alive = target, lambda: False


def ended(watch: ExecutorWatch, clock: list[float], seconds: int = 1300) -> str:
    """What it ends with, if it does, looking each second."""
    for second in range(1, seconds):
        clock[0] = float(second)
        try:
            watch.look()
        except NoExecutorError as error:
            return f"{second}: {error}"
    return ""


def test_a_job_without_executors_ends_after_the_bound(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(threading, "Thread", Now)
    said: list[str] = []
    watch = ExecutorWatch(cast("SparkContext", Context(0)), said.append, str(tmp_path), "scan")
    assert ended(watch, clock).startswith(
        "600: spark://there:7077 has no executor for this run, and the run has waited for 600 s. "
    )
    assert len(said) == 1


@pytest.mark.parametrize("beats", [True, False])
def test_tasks_that_give_no_sign_of_life_end_it_too(
    beats: bool, clock: list[float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(threading, "Thread", Now)
    file = tmp_path / "progress" / "scan-0-a"
    file.parent.mkdir()
    file.write_bytes(bytes(8) + b"process 7 on there")

    def say(_: object = None) -> None:
        said.append("said")

    said: list[str] = []
    watch = ExecutorWatch(cast("SparkContext", Context(1)), say, str(tmp_path), "scan")
    look = watch._cause

    def cause() -> tuple[str | None, str]:
        if beats and clock[0] % 5 == 0:
            os.utime(file, ns=(0, int(clock[0])))
        return look()

    monkeypatch.setattr(watch, "_cause", cause)
    end = ended(watch, clock)
    assert said == ([] if beats else ["said"])
    if beats:
        assert end == ""
    else:
        assert "no task gives a sign of life (process 7 on there), and the run has waited" in end


def test_executors_that_do_not_answer_end_the_first_job(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(threading, "Thread", Now)
    watch = ExecutorWatch(
        cast("SparkContext", Context(1)), lambda _: None, str(tmp_path), stage=None
    )
    assert "no executor has answered, and the run has waited for 600 s" in ended(watch, clock)
