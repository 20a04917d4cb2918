"""Signals and a Java that is killed, at the start and while tasks work that never end.

The tasks go on writing staged files until they are dead. Afterwards each log is as it was, or has a
group swapped in whole that was finished by then, and nothing is left: no staged file, no lock,
nothing in the temporary directory, no process.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from cleaner_jobs.first_use import KERNELS_MODULE
from tests.end_to_end import bad_input_logs
from tests.end_to_end.bad_input_logs import swapped_logs
from tests.end_to_end.bad_input_program import COMPACTED, HAND_OVER
from tests.support.command_process import hangups, shell_code
from tests.support.file_states import State, state_of

pytestmark = pytest.mark.spark

PROJECT = Path(__file__).parents[2]
JAVA_DIES = 0  # in the place of a signal
POLL_SECONDS = 0.05
# What comes at once may take as long; only where something is wrong does it take longer.
ENDING_SECONDS = 200.0
DYING_SECONDS = 60.0

AT_START = "start"  # of Java: the earliest moment at which there is something to be left behind
AT_FIRST_USE = "first use"  # while kernels are compiled

ENDS = [
    (AT_FIRST_USE, signal.SIGINT, "all"),  # first of all: the others take longer than the compiler
    (AT_START, signal.SIGINT, "once"),
    (AT_START, signal.SIGTERM, "once"),
    ("scan", signal.SIGINT, "once"),
    ("rewrite", signal.SIGINT, "twice"),
    ("scan", signal.SIGTERM, "once"),
    ("rewrite", signal.SIGTERM, "all"),  # with every process that a terminal or scheduler reaches
    ("scan", signal.SIGHUP, "all"),  # as where a connection is lost
    ("rewrite", signal.SIGHUP, "once"),
    ("rewrite", JAVA_DIES, "once"),
    (HAND_OVER, JAVA_DIES, "once"),
]


class Ended(NamedTuple):
    code: int
    out: str
    error: str
    java_alive: list[str]  # at its very end: it has to wait for that
    alive: list[str]  # processes that it had started, when they had time to die
    left: list[str]  # in the temporary directory
    before: State
    after: State


class Running:
    """One run, up to the moment when its tasks have gone far enough."""

    def __init__(
        self, root: Path, stage: str, engine: Sequence[str] = ("--master", "local[2]")
    ) -> None:
        template = bad_input_logs.write_template(root / "template")
        self.log_dir = root / "logs"
        bad_input_logs.make_log_dir(self.log_dir, template, ["one", "two"])
        self.before = state_of(self.log_dir)
        self._stage, self._temporary, self._mark = stage, root / "tmp", root / "mark"
        self._temporary.mkdir()
        partitions = ":".join(str(self.log_dir / f"{topic}-0") for topic in ("one", "two"))
        words = ["run", str(self.log_dir), *COMPACTED, *engine]
        hook = ["scan" if stage in (AT_START, AT_FIRST_USE) else stage, str(self._mark), partitions]
        environ = {**os.environ, "TMPDIR": str(self._temporary)}
        if stage == AT_FIRST_USE:
            environ |= {
                "XDG_CACHE_HOME": str(root / "cache"),
                "NUMBA_CACHE_DIR": str(root / "numba"),
            }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.end_to_end.bad_input_program", *hook, *words],
            cwd=PROJECT,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def end(self, number: int, how: str) -> Ended:
        while not self._is_far_enough() and self._process.poll() is None:
            time.sleep(POLL_SECONDS)
        assert self._process.poll() is None, self._process.communicate()
        started = self._started()
        self._send(number, how, started)
        out, error = self._process.communicate(timeout=ENDING_SECONDS)
        java = [name for name in map(_name, [*started, *self._related()]) if name == "java"]
        _, alive = psutil.wait_procs([*started, *self._related()], DYING_SECONDS)
        return Ended(
            shell_code(self._process.returncode),
            out,
            error,
            java,
            [name for name in map(_name, alive) if name],
            os.listdir(self._temporary),
            self.before,
            state_of(self.log_dir),
        )

    def _started(self) -> list[psutil.Process]:
        started: list[psutil.Process] = psutil.Process(self._process.pid).children(recursive=True)
        return started

    def _is_far_enough(self) -> bool:
        if self._stage == AT_FIRST_USE:
            return any(KERNELS_MODULE in _command(process) for process in self._started())
        return bool(self._started()) if self._stage == AT_START else self._mark.exists()

    def _related(self) -> list[psutil.Process]:
        """Processes that were started later, perhaps by others: they are told of this place."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if any(str(self._temporary) in word for word in process.cmdline()):
                    found.append(process)
        return found

    def _send(self, number: int, how: str, started: Sequence[psutil.Process]) -> None:
        if number == JAVA_DIES:
            next(process for process in started if _name(process) == "java").kill()
        elif how == "all":
            os.killpg(self._process.pid, number)
        else:
            self._process.send_signal(number)
        if how == "twice":  # while it cleans up
            time.sleep(5 * POLL_SECONDS)
            self._process.send_signal(number)

    def kill(self) -> None:
        """Leave nothing behind of a test that failed."""
        if self._process.poll() is None:
            for process in self._started():
                process.kill()
            self._process.kill()
            self._process.communicate()


def _name(process: psutil.Process) -> str:
    """Of a process that lives; of one that does not, nothing."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return "" if process.status() == psutil.STATUS_ZOMBIE else str(process.name())
    return ""


def _command(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return list(process.cmdline())
    return []


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[object, Ended]]:
    """All of them at once: each waits for its Java most of the time."""
    with hangups():
        running = {end: Running(tmp_path_factory.mktemp("ends"), end[0]) for end in ENDS}
    try:
        yield {end: run.end(*end[1:]) for end, run in running.items()}
    finally:
        for run in running.values():
            run.kill()


@pytest.mark.parametrize(("stage", "number", "how"), ENDS)
def test_a_run_that_is_ended_leaves_nothing_behind(
    ended: dict[object, Ended], stage: str, number: int, how: str
) -> None:
    found = ended[stage, number, how]
    assert swapped_logs(found.before, found.after) in ((0, 1, 2) if stage == "rewrite" else (0,))
    assert found.left == []
    assert found.java_alive == []
    assert found.alive == []


@pytest.mark.parametrize(("stage", "number", "how"), ENDS)
def test_it_says_so_in_one_line_and_by_its_exit_code(
    ended: dict[object, Ended], stage: str, number: int, how: str
) -> None:
    found = ended[stage, number, how]
    code, line, word = {
        signal.SIGINT: (130, "interrupted", "interrupted"),
        signal.SIGTERM: (143, "terminated", "interrupted"),
        signal.SIGHUP: (129, "hung up: the terminal or connection is gone", "interrupted"),
        JAVA_DIES: (
            1,
            f"{'scan' if stage == HAND_OVER else stage}: Spark's Java process is gone",
            "failed",
        ),
    }[number]
    assert found.code == code
    told = [text for text in found.error.splitlines() if text.startswith("compactor: ")]
    swapped = swapped_logs(found.before, found.after)
    changed = {
        0: "(Nothing was changed|0 groups of segments had been swapped in and stay; .*)",
        1: "1 group of segments had been swapped in and stay; .*",
        2: "2 groups of segments had been swapped in and stay; .*",
    }[swapped]
    assert told == [found.error.splitlines()[-1]]
    assert re.fullmatch(rf"compactor: {re.escape(line)}\. {changed}\.", told[0])
    for noise in ("Traceback", "\tat ", "ERROR", "Exception"):
        assert noise not in found.error + found.out
    summary = json.loads(found.out.splitlines()[-1])
    assert (summary["status"], summary["exit_code"], summary["error"]) == (word, code, line)
