"""What executors lack is told in one line, and one file of each log directory is looked for."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from cleaner_jobs.messages import RoundSettings
from cleaner_jobs.spark import executor_check
from cleaner_jobs.tasks.executor_paths import ExecutorProblem, Lack
from compactor.errors import RefusedError
from compactor.jobs.engines import Poll, require_able_executors, short_switch_interval
from storage.file_names import LOG, file_name
from tests.compactor.small_rounds import GROUPS, logs_in
from tests.support.made_log import plan_of

FACTS = RoundSettings("cafe", "/scratch/compactor-cafe", 0, 1, 2, False)
NAMES = (("/data", "/mnt/data"),)
SESSION = cast("Any", None)
Asked = list[tuple[executor_check.Samples, bool]]
LATE = "what those that come later are asked"


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Asked]:
    """Lets executors answer so, and returns what they are asked."""

    def set_answer(*problems: ExecutorProblem) -> Asked:
        asked: Asked = []

        def what_to_ask(
            _: Any, work_dir: str, samples: executor_check.Samples, to_write: bool, names: Any
        ) -> str:
            assert (work_dir, names) == (FACTS.work_dir, NAMES)
            asked.append((samples, to_write))
            return LATE

        def executor_problems(
            _: Any, work_dir: str, late: str, _say: object
        ) -> list[ExecutorProblem]:
            assert (work_dir, late) == (FACTS.work_dir, LATE)
            return list(problems)

        monkeypatch.setattr(executor_check, "what_to_ask", what_to_ask)
        monkeypatch.setattr(executor_check, "executor_problems", executor_problems)
        return asked

    return set_answer


def test_one_file_of_each_log_directory_is_looked_for(
    answer: Callable[..., Asked], tmp_path: Path
) -> None:
    places = [(tmp_path / d, name) for d in ("a", "b") for name in ("orders-0", "orders-1")]
    logs = [plan_of(logs_in(*place), GROUPS, 12, log_id=n) for n, place in enumerate(places)]
    asked = answer()
    late: object = require_able_executors(SESSION, logs, FACTS, NAMES)
    assert late == LATE
    require_able_executors(SESSION, logs, FACTS._replace(dry_run=True), NAMES)
    assert [to_write for _, to_write in asked] == [True, False]
    for samples, _ in asked:
        first = [tmp_path / d / "logs" / "orders-0" / file_name(0, LOG) for d in ("a", "b")]
        assert [sample.path for sample in samples.files] == [str(path) for path in first]
        assert [sample.log_inode for sample in samples.files] == [p.stat().st_ino for p in first]
        in_turn = [Path(logs[number].path) for number in (0, 2, 1, 3)]
        assert samples.directories == [str(path) for path in in_turn]


@pytest.mark.parametrize(
    ("problems", "line"),
    [
        (
            [
                ExecutorProblem(Lack.LOG_DIR, "/data/0.log: No such file or directory", ("b",)),
                ExecutorProblem(Lack.PYTHON, 'Cannot run program "python9"', ("a", "b")),
            ],
            'executor on a, b: Cannot run program "python9"; every executor needs this package and '
            "what it requires, as the driver has it, under the Python that PYSPARK_PYTHON names",
        ),
        (
            [
                ExecutorProblem(
                    Lack.WORK_DIR, "/work: is another directory there", ("a", "b", "c", "d", "e")
                )
            ],
            "executor on a, b, c and 2 more: /work: is another directory there; --work-dir has to "
            "name a directory that the driver and all executors share, under its name here or one "
            "of --executor-path",
        ),
        (
            [ExecutorProblem(Lack.LOG_DIR, "/data/0.log: No such file or directory", ("b",))],
            "executor on b: /data/0.log: No such file or directory; every executor has to reach "
            "the log directories, to read and to write, under the paths that they have here or "
            "those of --executor-path",
        ),
    ],
)
def test_what_is_missing_is_refused_with_host_and_cause(
    answer: Callable[..., Asked], problems: list[ExecutorProblem], line: str
) -> None:
    answer(*problems)
    with pytest.raises(RefusedError) as raised:
        require_able_executors(SESSION, [], FACTS, NAMES)
    assert str(raised.value) == line


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Its only element is what it shows."""
    shown = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: shown[0])
    return shown


def test_progress_is_asked_for_every_quarter_of_a_second(clock: list[float]) -> None:
    done, reported = iter((5, 9)), list[int]()
    poll = Poll(lambda: next(done), reported.append)
    for seconds in (0.0, 0.24, 0.25, 0.26, 0.49, 0.5):
        clock[0] = 100.0 + seconds
        poll.look()
    assert reported == [5, 9]


def test_what_cannot_be_found_out_is_not_reported(clock: list[float]) -> None:
    reported: list[int] = []

    def gone() -> int:
        raise FileNotFoundError

    poll = Poll(gone, reported.append)
    clock[0] += 1
    poll.look()
    assert reported == []


def test_an_interrupt_comes_through(clock: list[float]) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    poll = Poll(lambda: 1, interrupt)
    clock[0] += 1
    with pytest.raises(KeyboardInterrupt):
        poll.look()


def test_turns_are_taken_often_for_a_while() -> None:
    usual = sys.getswitchinterval()
    with pytest.raises(ValueError), short_switch_interval():
        assert sys.getswitchinterval() == pytest.approx(0.0001)
        raise ValueError
    assert sys.getswitchinterval() == usual
