"""An error as data keeps its kind, path, position and words."""

import errno

import pytest

from cleaner_jobs.problems import problem_of
from cleaner_jobs.task_values import TaskProblem
from cleaner_jobs.unchanged import LogChangedError
from storage.errors import CorruptFileError, UnsupportedFormatError


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (CorruptFileError("/a", 5, "bad"), TaskProblem(3, "corrupt", "/a", 5, "bad")),
        (UnsupportedFormatError("/a", 0, "new"), TaskProblem(3, "unsupported", "/a", 0, "new")),
        (LogChangedError("/a", "grew"), TaskProblem(3, "changed", "/a", -1, "grew")),
        (OSError(errno.ENOSPC, "full", "/a"), TaskProblem(3, "io", "/a", -1, "full")),
        (OSError(errno.EIO, "broken"), TaskProblem(3, "io", "", -1, "broken")),
        (OSError("odd"), TaskProblem(3, "io", "", -1, "odd")),
    ],
)
def test_what_becomes_of_an_error(error: Exception, expected: TaskProblem) -> None:
    assert problem_of(3, error) == expected


def test_our_own_mistakes_are_no_problem_of_a_log() -> None:
    with pytest.raises(AssertionError):
        problem_of(3, ZeroDivisionError())
