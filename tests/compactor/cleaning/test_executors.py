"""What executors lack is told in one line, and one file of each log directory is looked for."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from cleaner_jobs.spark import executor_check
from cleaner_jobs.spark.executor_problem import ExecutorProblem, Lack
from cleaner_jobs.task_values import RoundSettings, Source
from compactor.cleaning.executors import require_able_executors
from compactor.errors import RefusedError
from storage.file_names import LOG, file_name
from tests.compactor.small_rounds import GROUPS, logs_in
from tests.support.made_log import plan_of

FACTS = RoundSettings("cafe", "/scratch/compactor-cafe", 0, 1, 2, False)
SESSION = cast("Any", None)
Asked = list[tuple[Sequence[Source], bool]]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Asked]:
    """Lets executors answer so, and returns what they are asked."""

    def set_answer(*problems: ExecutorProblem) -> Asked:
        asked: Asked = []

        def executor_problems(
            _: Any, work_dir: str, samples: Sequence[Source], to_write: bool
        ) -> list[ExecutorProblem]:
            assert work_dir == FACTS.work_dir
            asked.append((samples, to_write))
            return list(problems)

        monkeypatch.setattr(executor_check, "executor_problems", executor_problems)
        return asked

    return set_answer


def test_one_file_of_each_log_directory_is_looked_for(
    answer: Callable[..., Asked], tmp_path: Path
) -> None:
    places = [(tmp_path / d, name) for d in ("a", "b") for name in ("orders-0", "orders-1")]
    logs = [plan_of(logs_in(*place), GROUPS, 12, log_id=n) for n, place in enumerate(places)]
    asked = answer()
    require_able_executors(SESSION, logs, FACTS)
    require_able_executors(SESSION, logs, FACTS._replace(dry_run=True))
    assert [to_write for _, to_write in asked] == [True, False]
    for samples, _ in asked:
        first = [tmp_path / d / "logs" / "orders-0" / file_name(0, LOG) for d in ("a", "b")]
        assert [sample.path for sample in samples] == [str(path) for path in first]
        assert [sample.log_inode for sample in samples] == [p.stat().st_ino for p in first]


@pytest.mark.parametrize(
    ("problems", "line"),
    [
        (
            [
                ExecutorProblem(Lack.LOG_DIR, "/data/0.log: No such file or directory", ("b",)),
                ExecutorProblem(Lack.PYTHON, 'Cannot run program "python9"', ("a", "b")),
            ],
            'executor on a, b: Cannot run program "python9"; every executor needs this package, '
            "under the Python that PYSPARK_PYTHON names",
        ),
        (
            [ExecutorProblem(Lack.WORK_DIR, "/work", ("a", "b", "c", "d", "e"))],
            "/work: is not the same directory on every executor (executor on a, b, c and 2 more); "
            "--work-dir has to name one that all of them share",
        ),
        (
            [ExecutorProblem(Lack.LOG_DIR, "/data/0.log: No such file or directory", ("b",))],
            "executor on b: /data/0.log: No such file or directory; every executor has to reach "
            "the log directories, to read and to write, under the paths that they have here",
        ),
    ],
)
def test_what_is_missing_is_refused_with_host_and_cause(
    answer: Callable[..., Asked], problems: list[ExecutorProblem], line: str
) -> None:
    answer(*problems)
    with pytest.raises(RefusedError) as raised:
        require_able_executors(SESSION, [], FACTS)
    assert str(raised.value) == line
