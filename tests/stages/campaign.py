"""Runs that are held at a stage and hit by a fault there; how long each took, and what it said."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from cleaner_jobs.spark.patience import VARIABLE
from tests.stages import held_run
from tests.stages.faults import Fault, Scene
from tests.support.command_process import PROJECT

BOUND_SECONDS = 18.0
MOST_SECONDS = 30.0  # to a word on what is waited for, and to the end of what has failed
LONGEST_SECONDS = 100.0
DISK_BYTES, DISK_INODES = 96 << 20, 4000
WORDS = ("--include", "orders", "--set", "cleanup.policy=compact", "--master", "local[1]")


class Outcome(NamedTuple):
    """What became of one run."""

    stage: str
    fault: str
    hit: bool
    code: int
    said_seconds: float | None  # from the fault to the word on what is waited for
    seconds: float  # from the fault to the end
    error: str
    problems: tuple[str, ...]

    def line(self) -> str:
        said = "" if self.said_seconds is None else f", said after {self.said_seconds:.0f} s"
        ended = f"{self.code} after {self.seconds:.1f} s{said}"
        hit = ended if self.hit else f"nothing to hit, {ended}"
        return f"{self.fault} at {self.stage}: {hit}" + "".join(
            f"\n    {problem}" for problem in self.problems
        )


@contextmanager
def small_disks(root: Path) -> Iterator[tuple[Path, Path]]:
    """For logs and for work: file systems in memory, small ones. Needs root."""
    disks = root / "logs-disk", root / "work-disk"
    mounted = []
    try:
        for disk in disks:
            disk.mkdir()
            options = f"size={DISK_BYTES},nr_inodes={DISK_INODES}"
            subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", disk], check=True)
            mounted.append(disk)
        yield disks
    finally:
        for disk in mounted:
            subprocess.run(["umount", "--lazy", disk], check=True)


def run_into(root: Path, logs: Path, stage: str, fault: Fault) -> Outcome:
    """Let a run over a copy of logs come to a stage, and make the fault.

    root: an empty directory.
    """
    with small_disks(root) as (logs_disk, work_disk):
        log_dir, status, report = (
            logs_disk / held_run.LOG_DIR_NAME,
            root / "status",
            root / held_run.REPORT_NAME,
        )
        shutil.copytree(logs, log_dir)
        program = [sys.executable, "-m", "tests.stages.held_run", status, stage]
        words = ["run", log_dir, *WORDS, "--work-dir", work_disk, "--report", report]
        words += ["--metrics", work_disk / held_run.METRICS_NAME]
        with (root / "out").open("wb") as out, (root / "said").open("wb") as said:
            running = subprocess.Popen(
                [*map(str, program), *map(str, words)],
                cwd=PROJECT,
                stdout=out,
                stderr=said,
                env={**os.environ, VARIABLE: str(BOUND_SECONDS), "TMPDIR": str(work_disk)},
                start_new_session=True,
            )
        scene = Scene(psutil.Process(running.pid), logs_disk, work_disk)
        try:
            return _hit(scene, running, root, stage, fault)
        finally:
            _end(running)


def _hit(
    scene: Scene, running: "subprocess.Popen[bytes]", root: Path, stage: str, fault: Fault
) -> Outcome:
    status = root / "status"
    _wait_for(stage, status, scene, running)
    hit = running.poll() is None and fault.make(scene)
    began = time.monotonic()
    held_run.go_of(status).touch()
    said = root / "said"
    said_seconds: float | None = None
    while running.poll() is None and time.monotonic() - began < LONGEST_SECONDS:
        if said_seconds is None and "waiting: " in said.read_text():
            said_seconds = time.monotonic() - began
        time.sleep(0.02)
    seconds = time.monotonic() - began
    code = -1 if running.poll() is None else running.returncode
    error = _error((root / "out").read_text(), said.read_text())
    problems = list(_problems(fault, hit, code, said_seconds, seconds, error))
    return Outcome(stage, fault.name, hit, code, said_seconds, seconds, error, tuple(problems))


def _wait_for(stage: str, status: Path, scene: Scene, running: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + LONGEST_SECONDS
    while running.poll() is None:
        if scene.java() if stage == held_run.JAVA else status.exists():
            return
        assert time.monotonic() < deadline, f"the run does not come to {stage}"
        time.sleep(0.01)


def _error(out: str, said: str) -> str:
    """Of the run; where that is of its logs alone, all that was said of them."""
    try:
        error = json.loads(out.splitlines()[-1]).get("error")
    except (IndexError, ValueError):
        error = None
    return str(error or f"{said}{out}"[:3000])


def _problems(
    fault: Fault, hit: bool, code: int, said_seconds: float | None, seconds: float, error: str
) -> Iterator[str]:
    if code == 0:
        if seconds > MOST_SECONDS and said_seconds is None:
            yield f"nothing was said in {seconds:.0f} s"
        return
    if not hit:
        yield f"failed without a fault: {error}"
        return
    limit = BOUND_SECONDS + MOST_SECONDS if fault.waits else MOST_SECONDS
    if code == -1:
        yield "did not end"
    elif seconds > limit:
        yield f"ended after more than {limit:.0f} s"
    if fault.waits and (said_seconds is None or said_seconds > MOST_SECONDS):
        yield "did not say what it waits for"
    if not re.search(fault.named, error):
        yield f"does not name the cause: {error}"


def _end(running: "subprocess.Popen[bytes]") -> None:
    """And whatever is left of its processes."""
    for process in psutil.process_iter(["pid"]):
        try:
            if os.getsid(process.pid) == running.pid:
                process.kill()
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    running.wait()
