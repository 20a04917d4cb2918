"""Calls of a function that a task names, and what comes of them."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cleaner_jobs.local.in_process_engine import InProcessEngine
from cleaner_jobs.messages import MAP, PROBLEM, RoundSettings, TaskProblem, value_of
from cleaner_jobs.tasks.mapping import MapContext, function_named, map_value
from storage.errors import CorruptFileError
from storage.files.local import LOCAL
from tests.support.local_round import settings_in

CONTEXT = MapContext(None, LOCAL)


class Doubled(NamedTuple):
    number: int
    twice: int


def double(value: Any, _: MapContext) -> Doubled:
    return Doubled(value, 2 * value)


def fail(value: Any, _: MapContext) -> None:
    if value == "corrupt":
        raise CorruptFileError("/d/t-0/5.log", 70, "no batch begins here")
    if value == "missing":
        raise FileNotFoundError(2, "No such file or directory", "/d/t-0/5.log")
    raise ValueError(value)


def name_of(function: Any) -> str:
    return f"{__name__}:{function.__name__}"


def test_a_function_is_found_by_its_module_and_name() -> None:
    assert function_named("os.path:basename") is __import__("os").path.basename
    with pytest.raises(ModuleNotFoundError):
        function_named("cleaner_jobs.nothing:there")


def test_a_result_comes_with_the_number_of_its_log() -> None:
    assert map_value(name_of(double), 7, 21, CONTEXT) == (MAP, (7, [21, 42]))


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("corrupt", (7, "damaged", "/d/t-0/5.log", 70, "no batch begins here", None)),
        ("missing", (7, "not-found", "/d/t-0/5.log", -1, "No such file or directory", 2)),
    ],
)
def test_an_error_of_a_log_is_its_problem(value: str, problem: tuple[Any, ...]) -> None:
    kind, found = map_value(name_of(fail), 7, value, CONTEXT)
    assert kind == PROBLEM
    assert found[:6] == problem


def test_any_other_error_is_a_fault_of_the_program() -> None:
    with pytest.raises(ValueError, match="else"):
        map_value(name_of(fail), 7, "else", CONTEXT)


def stage(work_dir: Path, tasks: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    settings: RoundSettings = settings_in(work_dir, 0)
    whole = [{"settings": settings, **task} for task in tasks]
    rows = InProcessEngine().run_stage(str(work_dir), MAP, whole, lambda _: None)
    return [(kind, json.loads(value)) for kind, value in rows]


def test_the_problem_of_a_log_ends_none_beside_it(tmp_path: Path) -> None:
    task = {"function": name_of(fail), "logs": [(0, 1, "corrupt"), (1, 1, "missing")]}
    others = {"function": name_of(double), "logs": [(2, 1, 5), (3, 1, 6)]}
    rows = stage(tmp_path, [task, others])
    assert [kind for kind, _ in rows] == [PROBLEM, PROBLEM, MAP, MAP]
    assert [value_of(TaskProblem, value).log_id for _, value in rows[:2]] == [0, 1]
    assert [value for _, value in rows[2:]] == [[2, [5, 10]], [3, [6, 12]]]
