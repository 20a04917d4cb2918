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

import psutil

from cleaner_jobs.patience import VARIABLE
from tests.campaign import Tried
from tests.stages import held_run
from tests.stages.faults import Fault, Scene
from tests.support.command_process import PROJECT

BOUND_SECONDS = 18.0
MOST_SECONDS = 30.0  # to a word on what is waited for, and to the end of what has failed
LONGEST_SECONDS = 100.0
DISK_BYTES, DISK_INODES = 96 << 20, 4000
WORDS = ("--include", "orders", "--set", "cleanup.policy=compact")
ENGINES = {"spark": ("--master", "local[1]"), "local": ("--engine", "local")}


@contextmanager
def small_disks(root: Path) -> Iterator[tuple[Path, Path]]:
    """Mount small file systems in memory, for logs and for work. Needs root."""
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


def run_into(root: Path, logs: Path, engine: str, stage: str, fault: Fault) -> Tried:
    """Let a run over a copy of logs come to a stage, and make the fault.

    root: an empty directory. engine: one of ENGINES.
    """
    with small_disks(root) as (logs_disk, work_disk):
        log_dir, status, report = (
            logs_disk / held_run.LOG_DIR_NAME,
            root / "status",
            root / held_run.REPORT_NAME,
        )
        shutil.copytree(logs, log_dir)
        program = [sys.executable, "-m", "tests.stages.held_run", status, stage]
        words = [
            "run",
            log_dir,
            *WORDS,
            *ENGINES[engine],
            "--work-dir",
            work_disk,
            "--report",
            report,
        ]
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
            tried = _hit(scene, running, root, stage, fault)
            return tried._replace(line=f"{engine}: {tried.line}")
        finally:
            _end(running)


def _hit(
    scene: Scene, running: "subprocess.Popen[bytes]", root: Path, stage: str, fault: Fault
) -> Tried:
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
    said_after = "" if said_seconds is None else f", said after {said_seconds:.0f} s"
    line = f"{fault.name} at {stage}: {'' if hit else 'nothing to hit, '}"
    line += f"{code} after {seconds:.1f} s{said_after}" + (f"\n    {error[:300]}" if code else "")
    return Tried(problems, line=line)


def _wait_for(stage: str, status: Path, scene: Scene, running: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + LONGEST_SECONDS
    while running.poll() is None:
        if scene.java() if stage == held_run.JAVA else status.exists():
            return
        assert time.monotonic() < deadline, f"the run does not come to {stage}"
        time.sleep(0.01)


def _error(out: str, said: str) -> str:
    """Return the error of the run; where it is of its logs alone, all that was said of them."""
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
    """End it with all that is left of its processes."""
    for process in psutil.process_iter(["pid"]):
        try:
            if os.getsid(process.pid) == running.pid:
                process.kill()
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    running.wait()
