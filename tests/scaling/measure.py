"""Measures rounds: processor seconds of tasks and of the driver, each alone in one process."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from cleaner_jobs.tasks.in_process_runner import InProcessTasks
from compactor import api
from tests.scaling.model import Point, Size
from tests.scaling.points import ParallelPoint
from tests.scaling.shapes import Shape, write

TURNS = 3
SETTINGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
MASTERS = ("local[1]", "local[2]", "local[4]", "local[8]")


def points(shapes: Sequence[Shape]) -> Iterator[Point]:
    """Of several turns that with the fewest seconds: what else a machine does only adds."""
    with tempfile.TemporaryDirectory(prefix="scaling-") as folder:
        for shape in shapes:
            given = Path(folder, "given")
            write(shape, given)
            turns = [_turn(given, Path(folder)) for _ in range(TURNS + 1)][1:]  # kernels are loaded
            tasks, driver = min(turns, key=sum)
            yield Point(shape.name, _size(shape, given), tasks, driver)
            shutil.rmtree(given)


def parallel_points(shape: Shape) -> Iterator[ParallelPoint]:
    """Whole commands with so many tasks at once, on the cores that there are."""
    with tempfile.TemporaryDirectory(prefix="scaling-") as folder:
        given = Path(folder, "given")
        write(shape, given)
        for master in MASTERS:
            copy, report = Path(folder, "copy"), Path(folder, "report.json")
            shutil.copytree(given, copy)
            words = [sys.executable, "-m", "compactor", "run", str(copy), "--include", "t"]
            words += [word for item in SETTINGS.items() for word in ("--set", "=".join(item))]
            words += ["--assume-fully-replicated", "--master", master, "--report", str(report)]
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode == 0, master
            phases = {p["name"]: p["seconds"] for p in json.loads(report.read_text())["phases"]}
            start = phases.pop("session")
            cpu = used.ru_utime + used.ru_stime
            yield ParallelPoint(master, _size(shape, given), start, sum(phases.values()), cpu)
            shutil.rmtree(copy)


def _turn(given: Path, folder: Path) -> tuple[float, float]:
    """Processor seconds of the tasks, and of everything else."""
    copy, of_tasks = folder / "copy", 0.0
    shutil.copytree(given, copy)
    run_stage = InProcessTasks.run_stage

    def timed(self: InProcessTasks, *stage: Any) -> Any:
        nonlocal of_tasks
        began = time.process_time()
        try:
            return run_stage(self, *stage)
        finally:
            of_tasks += time.process_time() - began

    rules = api.Rules(settings=SETTINGS, include="t", assume_fully_replicated=True)
    began = time.process_time()
    with mock.patch.object(InProcessTasks, "run_stage", timed):
        report = api.run([str(copy)], rules, api.RunOptions(in_process=True))
    seconds = time.process_time() - began
    assert all(log.status == "cleaned" for log in report.logs), report.logs
    shutil.rmtree(copy)
    return of_tasks, seconds - of_tasks


def _size(shape: Shape, log_dir: Path) -> Size:
    log_bytes = sum(path.stat().st_size for path in log_dir.rglob("*.log"))
    records = shape.records + 10 * shape.transactions
    return Size(log_bytes, records, shape.keys, shape.segments, shape.logs, shape.transactions)
