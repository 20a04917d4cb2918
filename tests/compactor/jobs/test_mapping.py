"""Logs are dealt to tasks by size, and each engine gives the results that this process gives."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cleaner_jobs.local.worker_pool import Workers
from cleaner_jobs.messages import TaskProblem
from cleaner_jobs.patience import processes_below
from cleaner_jobs.problems import StageFailedError
from cleaner_jobs.spark.environment import SUBMITTED_VARIABLE
from cleaner_jobs.tasks.mapping import MapContext
from compactor.jobs import mapping
from compactor.jobs.mapping import MappedLog, MapSettings, deal, is_done_here, map_logs
from compactor.settings.rules import EngineChoice, TaskOptions
from storage.errors import CorruptFileError
from tests.compactor.small_rounds import GROUPS, logs_in
from tests.support.local_round import NoProgress
from tests.support.made_log import plan_of

MIB = 1 << 20
NAMES = ("orders-0", "orders-1", "orders-2", "orders-3", "orders-4")
DAMAGED = "orders-2"


def measure(value: Any, context: MapContext) -> dict[str, Any]:
    """Stand in for what reads a log: its bytes, and where it was read. One log is damaged."""
    path, mark = value
    if path.endswith(DAMAGED):
        raise CorruptFileError(path, 5, "no batch begins here")
    if mark and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    _, names = context.disk.list_names(path)
    sizes = {name: context.disk.look_up(os.path.join(path, name)) for name in sorted(names)}
    return {name: found.size_bytes for name, found in sizes.items() if found is not None}


def fail(value: Any, _: MapContext) -> None:
    raise ValueError(value)


MEASURE = f"{__name__}:measure"


@pytest.fixture
def wanted(tmp_path: Path) -> list[MappedLog]:
    found = []
    for number, name in enumerate(NAMES):
        log = plan_of(logs_in(tmp_path / "d", name), GROUPS, 12, log_id=number)
        found.append(MappedLog([log.path, ""], (log,), log.log_bytes, 1))
    return found


class Shown(NoProgress):
    def __init__(self) -> None:
        self.stages: list[tuple[str, int]] = []
        self.done: list[int] = []
        self.messages: list[str] = []

    def stage(self, name: str, total: int) -> None:
        self.stages.append((name, total))

    def advance(self, done: int) -> None:
        self.done.append(done)

    def message(self, text: str, log: str | None = None) -> None:  # noqa: ARG002
        self.messages.append(text)


def expected(wanted: list[MappedLog]) -> list[dict[str, int] | None]:
    """The size of each file, by the file system; None for the log that is damaged."""
    return [
        None
        if each.logs[0].path.endswith(DAMAGED)
        else {path.name: path.stat().st_size for path in Path(each.logs[0].path).iterdir()}
        for each in wanted
    ]


def results(found: list[Any]) -> list[Any]:
    """Hold the one problem, and return None in its place."""
    [problem] = [each for each in found if isinstance(each, TaskProblem)]
    assert (problem.log_id, problem.code, problem.position) == (2, "damaged", 5)
    return [None if each is problem else each for each in found]


@contextmanager
def workers_of(count: int) -> Iterator[TaskOptions]:
    with Workers(count) as workers:
        yield TaskOptions(workers=workers)


def test_without_an_engine_nothing_is_started(wanted: list[MappedLog]) -> None:
    before, shown = {*processes_below([os.getpid()])}, Shown()
    found = map_logs(MEASURE, wanted, MapSettings(TaskOptions(), stage="look"), shown)
    assert results(found) == expected(wanted)
    assert {*processes_below([os.getpid()])} == before
    assert shown.stages == [("look", 5)]
    assert shown.done == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_processes_give_the_same_results_in_the_same_order(
    wanted: list[MappedLog], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapping, "TASK_BYTES", 1)
    shown = Shown()
    with workers_of(count) as options:
        found = map_logs(MEASURE, wanted, MapSettings(options, stage="look"), shown)
    assert results(found) == expected(wanted)
    assert shown.stages == [("start engine", 0), ("look", 5)]
    assert shown.done[-1] == 5
    plural = "es" if count > 1 else ""
    [said] = [line for line in shown.messages if line.startswith("engine: ")]
    assert said == f"engine: local, {count} process{plural} (workers were passed in)"


@pytest.mark.spark
def test_spark_gives_the_same_results_in_the_same_order(
    wanted: list[MappedLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapping, "TASK_BYTES", 1)
    settings = MapSettings(TaskOptions(master="local[2]"))
    assert results(map_logs(MEASURE, wanted, settings, NoProgress())) == expected(wanted)


def test_a_call_whose_worker_dies_is_made_again(wanted: list[MappedLog], tmp_path: Path) -> None:
    mark, shown = str(tmp_path / "mark"), Shown()
    wanted[3] = wanted[3]._replace(value=[wanted[3].logs[0].path, mark])
    with workers_of(2) as options:
        found = map_logs(MEASURE, wanted, MapSettings(options), shown)
    assert results(found) == expected(wanted)
    said = "map: a worker process was ended by SIGKILL. Its task is tried again"
    assert [line for line in shown.messages if "SIGKILL" in line] == [said]


def test_a_fault_of_the_program_fails_the_stage_and_leaves_nothing(
    wanted: list[MappedLog], tmp_path: Path
) -> None:
    work_dir = tmp_path / "work"
    with workers_of(1) as options, pytest.raises(StageFailedError, match="ValueError: "):
        map_logs(f"{__name__}:fail", wanted, MapSettings(options, str(work_dir)), NoProgress())
    assert list(work_dir.iterdir()) == []


def sized(*sizes: int) -> list[MappedLog]:
    return [MappedLog(None, (), size, 1) for size in sizes]


@pytest.mark.parametrize(
    ("options", "sizes", "here"),
    [
        (TaskOptions(), (256 * MIB, 256 * MIB - 1), True),
        (TaskOptions(), (256 * MIB, 256 * MIB), False),
        (TaskOptions(), (4096 * MIB, 0), True),  # of the other one nothing is read
        (TaskOptions(in_process=True), (4096 * MIB, 4096 * MIB), True),
        (TaskOptions(engine=EngineChoice.LOCAL), (1,), False),
        (TaskOptions(engine=EngineChoice.SPARK), (1,), False),
        (TaskOptions(master="local[2]"), (1,), False),
        (TaskOptions(spark_from=1), (1,), False),
    ],
)
def test_what_is_small_and_what_is_one_log_stays_in_this_process(
    options: TaskOptions, sizes: tuple[int, ...], here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SUBMITTED_VARIABLE, raising=False)
    assert is_done_here(options, sized(*sizes)) == here


def test_an_engine_that_the_caller_has_is_used() -> None:
    with workers_of(1) as options:
        assert not is_done_here(options, sized(1))


def test_large_logs_come_first_and_small_ones_share_a_task() -> None:
    quarter = mapping.LOG_COST_BYTES
    sizes = [MIB - quarter, 100 * MIB, 15 * MIB, 0, 300 * MIB, MIB - quarter]
    assert deal(sizes) == [[4], [1], [2], [0, 5, 3]]
    many = deal([0] * 65)  # 64 of them cost 16 MiB
    assert [len(numbers) for numbers in many] == [64, 1]
    assert deal([]) == []
