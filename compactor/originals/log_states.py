"""Recognise the states that a run takes a log through. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import TypeVar

from compactor.log_dirs.kept_files import FileMark
from compactor.originals.kept_manifest import KeptStep, LogBefore
from storage.file_names import LOG

State = Mapping[str, FileMark]  # every .log by name
_Seen = TypeVar("_Seen")  # what is known of a file, and compared


class ChangedSinceError(Exception):
    """The log is not what the run left."""


def left_by(before: LogBefore, steps: Sequence[KeptStep]) -> State:
    """The log after the last step.

    An active segment that retention made is not in it: it counts as written since.
    """
    state = {mark.name: mark for mark in before.segments}
    for step in steps:
        for mark in logs_of(step.originals):
            state.pop(mark.name, None)
        state |= {mark.name: mark for mark in logs_of(step.put)}
    return state


def steps_done(
    files: Mapping[str, _Seen],
    before: LogBefore,
    steps: Sequence[KeptStep],
    seen: Callable[[FileMark], _Seen],
) -> int | None:
    """How many steps are in the log; None where it is in no state that the run takes it through.

    seen: what of a file is compared with the log's. The last step counts where recovery has
    settled its swap and left the last of the sources, of which nothing is in what took their place.
    """
    state = {name: seen(mark) for name, mark in left_by(before, steps).items()}
    wrong = {name for name in files.keys() | state.keys() if files.get(name) != state.get(name)}
    for done, step in zip(range(len(steps), 0, -1), reversed(steps), strict=True):
        if not wrong:
            return done
        is_left_over = wrong == _left_over(files, step, seen)
        for mark in logs_of(step.put):
            state.pop(mark.name, None)
        state |= {mark.name: seen(mark) for mark in logs_of(step.originals)}
        for mark in logs_of((*step.put, *step.originals)):
            if files.get(mark.name) == state.get(mark.name):
                wrong.discard(mark.name)
            else:
                wrong.add(mark.name)
        if wrong and is_left_over:
            return done
    return None if wrong else 0


def logs_of(marks: Iterable[FileMark]) -> list[FileMark]:
    """Of their .log files, by base offset."""
    return sorted(mark for mark in marks if mark.name.endswith(LOG))


def difference(current: State, left: State, removed: Set[str]) -> str:
    """Name the first file that is not what the run left, which must exist. removed: by the run."""
    for name in sorted(current.keys() | left.keys()):
        now, then = current.get(name), left.get(name)
        if now == then:
            continue
        if now is None:
            return f"{name}, which the run left, is gone: deleted or cleaned again"
        if then is None:
            what = "which the run removed, is there again"
            return f"{name}, {what if name in removed else 'which the run did not leave there'}"
        if now.size_bytes != then.size_bytes:
            return f"{name} has {now.size_bytes} bytes, the run left {then.size_bytes}"
        return f"{name} has other bytes than those that the run left"
    raise AssertionError("the log is as the run left it")


def _left_over(
    files: Mapping[str, _Seen], step: KeptStep, seen: Callable[[FileMark], _Seen]
) -> set[str]:
    """The last sources of a swap that still exist."""
    put, left = {mark.name for mark in step.put}, set()
    for mark in reversed(logs_of(step.originals)):
        if not put or mark.name in put or files.get(mark.name) != seen(mark):
            break
        left.add(mark.name)
    return left
