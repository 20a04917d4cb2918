"""Measures rounds: processor seconds of tasks and of the driver, each alone in one process.

The measured points are kept beside this module for the next fit.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from cleaner_jobs.local.in_process_engine import InProcessEngine
from compactor import api
from tests.bench.results import value_of
from tests.bench.timing import module, run_to_success, timed
from tests.scaling.model import Point, Size
from tests.scaling.shapes import Shape, write

FILE = Path(__file__).with_name("points.json")
TURNS = 3
SETTINGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
IN_PROCESS = api.RunOptions(in_process=True)
MASTERS = ("local[1]", "local[2]", "local[4]", "local[8]")


class ParallelPoint(NamedTuple):
    """A whole command with so many tasks at once."""

    master: str
    size: Size
    start_seconds: float  # until Spark was ready
    seconds: float  # of the phases after that
    processor_seconds: float  # of all processes, from the start to the end


class Measured(NamedTuple):
    machine: str
    points: list[Point]
    parallel: list[ParallelPoint]


def read() -> Measured:
    found: Measured = value_of(Measured, json.loads(FILE.read_text("utf-8")))
    return found


def save(measured: Measured) -> None:
    FILE.write_text(json.dumps(measured._asdict(), indent=1) + "\n", "utf-8")


def points(shapes: Sequence[Shape]) -> Iterator[Point]:
    """Yield of several turns that with the fewest seconds: what else a machine does only adds."""
    with tempfile.TemporaryDirectory(prefix="scaling-") as folder:
        for shape in shapes:
            given = Path(folder, "given")
            write(shape, given)
            turns = [_turn(given, Path(folder)) for _ in range(TURNS + 1)][1:]  # kernels are loaded
            tasks, driver = min(turns, key=sum)
            yield Point(shape.name, _size(shape, given), tasks, driver)
            shutil.rmtree(given)


def parallel_points(shape: Shape) -> Iterator[ParallelPoint]:
    """Yield whole commands with so many tasks at once, on the cores that there are."""
    with tempfile.TemporaryDirectory(prefix="scaling-") as folder:
        given = Path(folder, "given")
        write(shape, given)
        for master in MASTERS:
            copy, report = Path(folder, "copy"), Path(folder, "report.json")
            shutil.copytree(given, copy)
            words = module("compactor", "run", str(copy), "--include", "t")
            words += [word for item in SETTINGS.items() for word in ("--set", "=".join(item))]
            words += ["--assume-fully-replicated", "--master", master, "--report", str(report)]
            cpu_seconds = run_to_success(words).sample.cpu_seconds
            phases = {p["name"]: p["seconds"] for p in json.loads(report.read_text())["phases"]}
            start = phases.pop("session")
            seconds = sum(phases.values())
            yield ParallelPoint(master, _size(shape, given), start, seconds, cpu_seconds)
            shutil.rmtree(copy)


def _turn(given: Path, folder: Path) -> tuple[float, float]:
    """Return processor seconds of the tasks, and of everything else."""
    copy, of_tasks = folder / "copy", 0.0
    shutil.copytree(given, copy)
    run_stage = InProcessEngine.run_stage

    def run(self: InProcessEngine, *stage: Any) -> Any:
        nonlocal of_tasks
        sample, found = timed(lambda: run_stage(self, *stage))
        of_tasks += sample.cpu_seconds
        return found

    rules = api.Rules(settings=SETTINGS, include="t", assume_fully_replicated=True)
    with mock.patch.object(InProcessEngine, "run_stage", run):
        whole, report = timed(lambda: api.run([str(copy)], rules, IN_PROCESS))
    assert all(log.status == "cleaned" for log in report.logs), report.logs
    shutil.rmtree(copy)
    return of_tasks, whole.cpu_seconds - of_tasks


def _size(shape: Shape, log_dir: Path) -> Size:
    log_bytes = sum(path.stat().st_size for path in log_dir.rglob("*.log"))
    records = shape.records + 10 * shape.transactions
    return Size(log_bytes, records, shape.keys, shape.segments, shape.logs, shape.transactions)
