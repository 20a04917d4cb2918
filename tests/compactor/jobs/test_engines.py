"""What executors lack is told in one line, and one file of each log directory is looked for."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from cleaner_jobs.messages import RoundSettings
from cleaner_jobs.spark import executor_check
from cleaner_jobs.spark.environment import SUBMITTED_VARIABLE
from cleaner_jobs.tasks.executor_paths import ExecutorProblem, Lack
from compactor.errors import CleaningFailedError, ConfigError, RefusedError, UsageError
from compactor.jobs import engines
from compactor.jobs.engines import (
    SPARK_FROM_BYTES,
    Poll,
    choose_engine,
    require_able_executors,
    require_possible_engine,
    short_switch_interval,
)
from compactor.settings.rules import EngineChoice, RunOptions, option_names
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


SESSION_OF_CALLER, WORKERS = cast("Any", object()), cast("Any", object())
SMALL, LARGE = SPARK_FROM_BYTES - 1, SPARK_FROM_BYTES


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """What there is: a usable Java, a session that nobody passed in, spark-submit."""
    there = {"java": True, "session": False}

    def find(_: object) -> None:
        if not there["java"]:
            raise CleaningFailedError("no Java")

    monkeypatch.setattr(engines, "find_java", find)
    monkeypatch.setattr(engines, "has_session", lambda: there["session"])
    monkeypatch.setattr(engines, "why_unusable", lambda _: None)
    monkeypatch.delenv(SUBMITTED_VARIABLE, raising=False)
    return there


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    ("options", "log_bytes", "choice", "why"),
    [
        (RunOptions(), SMALL, "local", "1.1 GB of logs to read, less than 1 GiB"),
        (RunOptions(), LARGE, "spark", "1.1 GB of logs to read"),
        (RunOptions(master="local[2]"), SMALL, "spark", "the master is local[2]"),
        (RunOptions(session=SESSION_OF_CALLER), SMALL, "spark", "a session was passed in"),
        (RunOptions(workers=WORKERS), LARGE, "local", "workers were passed in"),
        (RunOptions(in_process=True), LARGE, "local", "in this process"),
        (RunOptions(engine=EngineChoice.LOCAL), LARGE, "local", "as asked for"),
        (RunOptions(engine=EngineChoice.SPARK), SMALL, "spark", "as asked for"),
    ],
)
def test_the_engine_is_chosen_by_the_options_and_the_size(
    options: RunOptions, log_bytes: int, choice: str, why: str
) -> None:
    assert choose_engine(options, log_bytes) == (choice, why)


def test_without_java_it_is_local_whatever_the_size(machine: dict[str, bool]) -> None:
    machine["java"] = False
    found = choose_engine(RunOptions(), 1 << 50)
    assert found == ("local", "no Java that Spark runs on was found")


def test_under_spark_submit_it_is_spark(
    machine: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine["java"] = False  # Java runs already
    monkeypatch.setenv(SUBMITTED_VARIABLE, "12345")
    assert choose_engine(RunOptions(), 0) == ("spark", "started by spark-submit")


def test_a_session_that_was_not_passed_in_counts_as_none(machine: dict[str, bool]) -> None:
    """Below the threshold the call runs locally; above it, it is refused with both ways out."""
    machine["session"] = True
    require_possible_engine(RunOptions())
    assert choose_engine(RunOptions(), SMALL).choice == "local"
    with pytest.raises(ConfigError, match=r"session=….*engine=\"local\""):
        choose_engine(RunOptions(), LARGE)
    with pytest.raises(ConfigError, match=r"session=….*engine=\"local\".*Nothing was changed"):
        require_possible_engine(RunOptions(engine=EngineChoice.SPARK))


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            RunOptions(engine=EngineChoice.LOCAL, master="local[2]"),
            "--master: not with local processes, which --engine asks for",
        ),
        (RunOptions(workers=WORKERS, master="local[2]"), "--master"),
        (
            RunOptions(workers=WORKERS, engine=EngineChoice.SPARK),
            "--engine spark: not with workers",
        ),
    ],
)
def test_options_of_both_engines_contradict_each_other(options: RunOptions, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        require_possible_engine(options)
    assert raised.value.text(option_names()).startswith(message)
