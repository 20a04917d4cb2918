"""Every file operation of a command fails, once or from then on: nothing is lost, all is told.

The command ends with a message, whatever the error; the log directory holds the old log or the new
one; and the next command does what this one has not.
"""

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from compactor.recovery.log_dir_recovery import recover_log_dir
from tests.crash import checks
from tests.crash.states import LOCK_FILE
from tests.disturbed.copied import ENDINGS, CopyStage, error_untold, problems_of
from tests.disturbed.stage import Outcome, Stage, outcome_of, unforeseen
from tests.support.file_operations import READS, WRITES, Before, Operation
from tests.support.local_command import Ended

SHORT = 0  # in the place of an error number: half of what was wanted is read or written
_OPENS = "open", "open-to-write", "scandir", "listdir"
_TAKES_ROOM = (
    "open-to-write",
    "mkdir",
    "rename",
    "replace",
    "link",
    "fsync",
    "fdatasync",
    "setxattr",
    "close",
    *WRITES,
)
_NAMES = {
    SHORT: "short",
    **{n: errno.errorcode[n] for n in (errno.EIO, errno.ENOSPC, errno.EMFILE)},
}


class Failure(NamedTuple):
    """What goes wrong."""

    at: int  # number of the operation
    error: int
    lasts: bool  # every later operation that can fail so does, too

    def __str__(self) -> str:
        return f"{_NAMES[self.error]} {'from' if self.lasts else 'at'} operation {self.at}"


def can_fail_so(operation: Operation, error: int) -> bool:
    """Whether a system may answer an operation in this way."""
    if error == SHORT:
        return operation.kind in READS + WRITES
    if error == errno.EMFILE:
        return operation.kind in _OPENS
    if error == errno.ENOSPC:
        return operation.kind in _TAKES_ROOM
    return True


def failures_of(stage: Stage | CopyStage) -> Iterator[Failure]:
    """All of them."""
    for number, operation in enumerate(stage.operations):
        for error in _NAMES:
            if can_fail_so(operation, error):
                yield Failure(number, error, lasts=False)
                yield Failure(number, error, lasts=True)


def tried_on_copy(stage: CopyStage, failure: Failure) -> Outcome:
    """Let it happen while a copy is made."""
    original = stage.reset()
    ended = stage.scene.play(stage.place, _failing(failure))
    untold = error_untold(ended, failure.error)
    return _outcome(stage, failure, ended, chain(problems_of(stage, original, ended), untold))


def tried(stage: Stage, failure: Failure) -> Outcome:
    """Let it happen, and look at what there is then."""
    stage.reset()
    ended = stage.scene.play(stage.place, _failing(failure))
    return _outcome(stage, failure, ended, _problems(stage, failure, ended))


def _outcome(
    stage: Stage | CopyStage, failure: Failure, ended: Ended, problems: Iterable[str]
) -> Outcome:
    kind, operation = _NAMES[failure.error], stage.operations[failure.at]
    return outcome_of(failure, kind, operation, ENDINGS.get(ended.code), problems)


def _failing(failure: Failure) -> Before:
    count = 0

    def before(operation: Operation) -> int | None:
        nonlocal count
        number, count = count, count + 1
        happens = number >= failure.at if failure.lasts else number == failure.at
        if not happens or not can_fail_so(operation, failure.error):
            return None
        if failure.error == SHORT:
            return 1 + number % 40
        raise OSError(failure.error, os.strerror(failure.error))

    return before


def _problems(stage: Stage, failure: Failure, ended: Ended) -> Iterator[str]:
    yield from stage.left_open()
    yield from unforeseen(ended, ENDINGS)
    yield from error_untold(ended, failure.error)
    told = f"{ended.out} {ended.error}"
    if ended.code and failure.error != errno.EMFILE and str(stage.place.root) not in told:
        yield f"the file is not told: {told}"
    yield from stage.said_falsely(ended)
    if ended.code == 0 and stage.state().logs != stage.end.logs:
        yield "said to be done, and is not"
    if stage.scene.command != "recover":
        yield from _lost(stage)
    again = stage.scene.play(stage.place)
    if again.code:
        yield f"the next command ends with {again.code}: {again.out} {again.error}"
    now = stage.state()
    names = now.names ^ stage.end.names
    if now != stage.end:
        differ = [name for name in now.logs if now.logs[name] != stage.end.logs.get(name)]
        yield f"the next command leaves something else: {sorted(names)}, {differ}"


def _lost(stage: Stage) -> Iterator[str]:
    """What is not there any more when somebody recovers the log directory as it is."""
    copy = stage.place.root.with_name("copy")
    shutil.copytree(stage.place.logs, copy)
    try:
        recovered = recover_log_dir(str(copy))
        yield from (f"recovery: {log.problem}" for log in recovered.logs if log.problem)
        yield from checks.problems_of(copy, stage.ends, (LOCK_FILE,))
    finally:
        shutil.rmtree(copy)
