"""A story of the crash campaign in which an operation on a file fails, once or from then on.

It is told: the line that was at it ends with an error of the log, which is offline from then on; or
the line does the same as without the failure. An append that finds no room leaves the `.log` as it
was. The log is opened again then, as after a crash: what was flushed is there, what is there is
sound.
"""

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from storage.file_names import LOG
from storage.files.local import LOCAL
from tests.disturbed.errors import SHORT, Failure, can_fail_so
from tests.engine.crash.opening import LOOK, looked_at
from tests.engine.crash.record import PARTITION, Stage, stage_of
from tests.engine.crash.stories import SMALL, Story
from tests.engine.replay.replayed import replay_in
from tests.engine.rules.case import Line
from tests.engine.rules.steps import one
from tests.support.file_operations import FileOperations, Operation

OFFLINE = "KafkaStorageException"
_ERRORS = (errno.EIO, errno.ENOSPC, SHORT)
_NOTHING: Line = {}
# what changes a file or a name, or forces it to disk
_CHANGES = (
    "open-to-write", "rename", "replace", "link", "remove", "unlink", "mkdir", "rmdir",
    "write", "pwrite", "ftruncate", "fsync", "fdatasync", "close",
)  # fmt: skip


class Course(NamedTuple):
    """How a story goes when nothing fails."""

    story: Story
    told: Sequence[Line]  # by the lines that may be cut short
    stages: Sequence[Stage]  # before the first of them, and after each
    operations: Sequence[Operation]


class Outcome(NamedTuple):
    """What came of one failure."""

    ending: str
    problems: Sequence[str]


class _Play:
    """A story in a directory, line by line, until it is told to stop."""

    def __init__(self, story: Story, log_dir: Path) -> None:
        self._script = [*story.before, *story.cut_short]
        self._lines = replay_in(LOCAL, str(log_dir)).lines(self._given())
        for _ in story.before:
            self.next()

    def _given(self) -> Iterator[Line]:
        while self._script:
            yield self._script.pop(0)

    def next(self) -> dict[str, Any]:
        """Do a line."""
        return next(self._lines)

    def then(self, *lines: Line) -> list[dict[str, Any]]:
        """Do other lines in the place of the rest, and let go of the files."""
        self._script[:] = lines
        return list(self._lines)


def course_of(story: Story, work: Path) -> Course:
    """Let nothing fail."""
    log_dir = work / "logs"
    play, operations = _Play(story, log_dir), list[Operation]()

    def note(operation: Operation) -> None:
        if operation.kind in _CHANGES:
            operations.append(operation)

    stages = [stage_of(0, log_dir, {"op": "", "state": None}, None)]
    told = []
    with FileOperations(log_dir, note).listening():
        for number, _ in enumerate(story.cut_short, 1):
            told.append(play.next())
            assert "error" not in told[-1], told[-1]
            stages.append(stage_of(number, log_dir, told[-1], stages[-1]))
    play.then()
    shutil.rmtree(log_dir)
    return Course(story, told, stages, operations)


def failures_of(course: Course) -> Iterator[Failure]:
    """All of them."""
    for number, operation in enumerate(course.operations):
        for error in _ERRORS:
            if can_fail_so(operation, error):
                yield Failure(number, error, lasts=False)
                yield Failure(number, error, lasts=True)


class _Failing:
    """What `FileOperations` asks before each operation."""

    def __init__(self, failure: Failure) -> None:
        self._failure, self._count = failure, 0
        self.failed: list[Operation] = []
        self._before_line = 0  # how many had failed

    def begin_line(self) -> None:
        self._before_line = len(self.failed)

    @property
    def failed_in_line(self) -> list[Operation]:
        """What failed in the last line; all, where it ends for what failed before it.

        The closing of a file in which nothing is unsynced may fail and tell nothing.
        """
        return self.failed[self._before_line :] or self.failed

    def __call__(self, operation: Operation) -> int | None:
        if operation.kind not in _CHANGES:
            return None
        failure, number = self._failure, self._count
        self._count += 1
        happens = number >= failure.at if failure.lasts else number == failure.at
        if not happens or not can_fail_so(operation, failure.error):
            return None
        self.failed.append(operation)
        if failure.error == SHORT:
            return 1 + number % 40
        raise OSError(failure.error, os.strerror(failure.error))


def tried(course: Course, failure: Failure, log_dir: Path) -> Outcome:
    """Let it happen, and look at what there is then."""
    play, failing = _Play(course.story, log_dir), _Failing(failure)
    done, line, problems = 0, _NOTHING, list[str]()
    with FileOperations(log_dir, failing).listening():
        for expected in course.told:
            failing.begin_line()
            try:
                line = play.next()
            except Exception as error:  # what is no answer of the log is a finding
                shutil.rmtree(log_dir)
                return Outcome("unforeseen", [f"{expected['op']}: {error!r}"])
            if "error" in line:
                break
            if line != expected:
                problems.append(f"{line['op']} differs, and tells nothing: {line}, not {expected}")
                break
            done += 1
    problems += _of_end(course, failing, log_dir, play, done, line)
    looked = looked_at(log_dir, [SMALL, *LOOK], course.stages[: done + 2], done)
    shutil.rmtree(log_dir)
    ending = f"{line['op']} ends with {line['error']}" if "error" in line else "all is done"
    return Outcome(ending, [*problems, *looked.problems])


def _is_of_log(failing: _Failing, line: Line) -> bool:
    """Whether the log directory has to be offline now.

    Not for the script's own checkpoints, nor for a snapshot: its errors are the caller's in Kafka.
    """
    return f"/{PARTITION}" in failing.failed_in_line[0].path and line["op"] != "snapshot"


def _of_end(
    course: Course, failing: _Failing, log_dir: Path, play: _Play, done: int, line: Line
) -> Iterator[str]:
    """What is wrong right after an error, before the log is opened anew."""
    before = course.stages[done]
    if "error" in line and line["op"] == "append":
        first = failing.failed_in_line[0]
        size = sum(len(held.raw) for held in before.batches.values())
        found = sum(path.stat().st_size for path in (log_dir / PARTITION).glob(f"*{LOG}"))
        is_log = first.kind == "pwrite" and first.path.endswith(LOG)
        if is_log and len(failing.failed_in_line) == 1 and found != size:
            yield f"{size} bytes before the append, and {found} after it"
    is_open = "error" in line and line["state"] is not None
    after = play.then(*([one()] if is_open and _is_of_log(failing, line) else []))
    if "error" not in line or not _is_of_log(failing, line):
        return
    if line["error"] != OFFLINE:
        yield f"{line['op']} ends with {line['error']}, {line.get('cause')}"
    if is_open and after[-1].get("error") != OFFLINE:
        yield f"after {line['op']} has failed, an append gives {after[-1]}"
