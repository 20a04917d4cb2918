"""An error as data keeps its code, errno, path, position and words."""

import errno
from typing import Any

import pytest

from cleaner_jobs.messages import TaskProblem
from cleaner_jobs.problems import MiswrittenError, OversizedRecordError, problem_of
from cleaner_jobs.source_identity import LogChangedError
from storage.errors import CorruptFileError, UnsupportedFormatError


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (CorruptFileError("/a", 5, "bad"), (3, "damaged", "/a", 5, "bad")),
        (UnsupportedFormatError("/a", 0, "new"), (3, "unsupported-format", "/a", 0, "new")),
        (OversizedRecordError("/a", 9, "large"), (3, "record-too-large", "/a", 9, "large")),
        (MiswrittenError("/a", 9, "other"), (3, "faulty-machine", "/a", 9, "other")),
        (LogChangedError("/a", "grew"), (3, "changed-meanwhile", "/a", -1, "grew")),
        (OSError(errno.ENOSPC, "full", "/a"), (3, "no-room", "/a", -1, "full", errno.ENOSPC)),
        (OSError(errno.EACCES, "no", "/a"), (3, "no-permission", "/a", -1, "no", errno.EACCES)),
        (OSError(errno.EIO, "broken"), (3, "input-output", "", -1, "broken", errno.EIO)),
        (OSError("odd"), (3, "input-output", "", -1, "odd")),
    ],
)
def test_what_becomes_of_an_error(error: Exception, expected: tuple[Any, ...]) -> None:
    assert problem_of(3, error) == TaskProblem(*expected)


def test_our_own_mistakes_are_no_problem_of_a_log() -> None:
    with pytest.raises(AssertionError):
        problem_of(3, ZeroDivisionError())
