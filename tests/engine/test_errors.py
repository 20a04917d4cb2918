"""A sample of the failures of files in the engine's operations; all of them by
`python -m tests.engine.errors`."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.disturbed.errors import Failure
from tests.engine.crash.stories import STORIES, Story
from tests.engine.errors.failing import Outcome, course_of, failures_of, tried

SAMPLE = 8


def outcomes(story: Story, work: Path, operation: str = "") -> Iterator[tuple[Failure, Outcome]]:
    """Of all failures of such an operation, or of a few of all operations."""
    course = course_of(story, work)
    every = [*failures_of(course)]
    full = [each for each in every if each.error == errno.ENOSPC]
    chosen = [each for each in full if operation == course.operations[each.at].kind]
    for failure in chosen or every[3 :: len(every) // SAMPLE]:
        yield failure, tried(course, failure, work / "failing")


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_failure_is_told_and_loses_nothing(story: Story, tmp_path: Path) -> None:
    """L-30."""
    found = list(outcomes(story, tmp_path))
    assert [(str(failure), each.problems) for failure, each in found if each.problems] == []
    assert len(found) >= SAMPLE


def test_a_disk_that_fills_while_a_log_is_recovered_loses_nothing(tmp_path: Path) -> None:
    (story,) = (story for story in STORIES if story.name == "recovered")
    found = list(outcomes(story, tmp_path, "pwrite"))
    assert [(str(failure), each.problems) for failure, each in found if each.problems] == []
    assert any(each.ending.startswith("open ends with") for _, each in found)


def test_what_a_line_tells_is_held_against_what_failed_in_it(tmp_path: Path) -> None:
    """The closing of a file that is synced may fail unheard; then a checkpoint finds no room."""
    (story,) = (story for story in STORIES if story.name == "roll")
    found = list(outcomes(story, tmp_path, "close"))
    assert [(str(failure), each.problems) for failure, each in found if each.problems] == []
    assert any(each.ending.startswith("checkpoint ends with") for _, each in found)
