"""Worker processes leave what one process leaves; a task whose worker dies is tried again."""

import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from cleaner_jobs.local.local_engine import MOST_TRIES, LocalEngine
from cleaner_jobs.local.worker_host import Failed, Work
from cleaner_jobs.local.worker_pool import Answer, WorkerDiedError, Workers
from cleaner_jobs.messages import SCAN, Row
from cleaner_jobs.problems import StageFailedError
from compactor import api
from compactor.planning import layout
from storage.formats import clean_shutdown
from tests.compactor.small_log import build
from tests.support.local_round import settings_in

RULES = api.Rules(
    include=".*",
    settings={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"},
    as_of=5000,
    any_clock=True,
    assume_fully_replicated=True,
)


def cleaned(path: Path, options: api.RunOptions) -> dict[str, bytes]:
    """Build a log directory, clean it, and return the contents of its files."""
    build(path)
    clean_shutdown.write(str(path))
    [log] = api.run([str(path)], RULES, options).logs
    assert log.status is api.LogStatus.CLEANED
    files = (file for file in path.rglob("*") if file.is_file() and file.name != ".lock")
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


@pytest.mark.parametrize("processes", [1, 2, 4, 8])
def test_any_number_of_processes_leaves_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    monkeypatch.setattr(layout, "SMALLEST_SHARE_BYTES", 1)  # small groups are cut and joined, too
    expected = cleaned(tmp_path / "one", api.RunOptions(in_process=True))
    with Workers(processes) as workers:
        options = api.RunOptions(workers=workers)
        assert cleaned(tmp_path / "many", options) == expected
        assert cleaned(tmp_path / "again", options) == expected


class ScriptedPool:
    """A pool of one worker; what becomes of each task that it gets stands in a script."""

    def __init__(self, script: Iterator[object], given: list[Work]) -> None:
        self._script, self._given = script, given
        self._work: Work | None = None

    @property
    def idle(self) -> int:
        return 0 if self._work else 1

    @property
    def unfinished(self) -> Sequence[Work]:
        return [self._work] if self._work else []

    def give(self, work: Work) -> None:
        self._given.append(work)
        self._work = work

    def answers(self, _: float) -> Iterator[Answer]:
        match next(self._script):
            case WorkerDiedError() as error:
                raise error
            case Failed() as failed:
                yield Answer(cast(Work, self._work), failed)
            case rows:
                yield Answer(cast(Work, self._work), cast(Any, rows))
        self._work = None


class ScriptedWorkers:
    processes = 1

    def __init__(self, *script: object) -> None:
        self._script = iter(script)
        self.given: list[Work] = []
        self.pools = 0
        self._pool: ScriptedPool | None = None

    def pool(self) -> ScriptedPool:
        if self._pool is None:
            self._pool = ScriptedPool(self._script, self.given)
            self.pools += 1
        return self._pool

    def close(self) -> None:
        self._pool = None


DIED = WorkerDiedError("a worker process was ended by SIGKILL")
Run = Callable[..., list[Row]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    settings_in(tmp_path, 0)  # makes what a work directory has

    def run_stage(workers: ScriptedWorkers, tasks: int, said: list[str]) -> list[Row]:
        engine = LocalEngine(cast(Workers, workers), said.append)
        return engine.run_stage(str(tmp_path), SCAN, [{}] * tasks, lambda _: None)

    return run_stage


def test_rows_are_in_the_order_of_the_tasks_and_those_of_a_retried_task_come_once(run: Run) -> None:
    said: list[str] = []
    workers = ScriptedWorkers(DIED, [("part", "b")], [("part", "a")])
    assert run(workers, 2, said) == [("part", "a"), ("part", "b")]
    assert said == ["scan: a worker process was ended by SIGKILL. Its task is tried again"]
    assert [work.number for work in workers.given] == [0, 1, 0]
    assert len({work.attempt for work in workers.given}) == 3, "no try writes to another's files"
    assert workers.pools == 2


def test_a_task_whose_worker_dies_four_times_fails_the_stage(run: Run) -> None:
    said: list[str] = []
    workers = ScriptedWorkers(*[DIED] * 9)
    with pytest.raises(StageFailedError) as raised:
        run(workers, 1, said)
    assert len(workers.given) == MOST_TRIES == 4
    assert len(said) == 3
    assert str(raised.value) == (
        "scan: a worker process was ended by SIGKILL. Its task was tried 4 times"
    )


def test_a_task_that_fails_is_not_tried_again(run: Run) -> None:
    workers = ScriptedWorkers(Failed("ValueError: no such codec", "in scan.py, line 7"))
    message = r"^scan: a task failed: ValueError: no such codec$"
    with pytest.raises(StageFailedError, match=message) as raised:
        run(workers, 2, [])
    assert "TaskError: in scan.py, line 7\n" in traceback.format_exception(raised.value)[0]
    assert len(workers.given) == 1
    assert workers._pool is None, "no worker goes on"
