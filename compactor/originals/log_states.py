"""The states that a run takes a log through, as they are known again. Pure."""

from collections.abc import Mapping, Sequence, Set

from compactor.originals.kept_manifest import FileMark, KeptStep, LogBefore
from storage.file_names import LOG

State = Mapping[str, FileMark]  # every .log by name


class ChangedSinceError(Exception):
    """The log is not what the run left."""


def states_of(before: LogBefore, steps: Sequence[KeptStep]) -> list[State]:
    """The log before the first step, and after each.

    An active segment that retention made is in none of them: it counts as written since.
    """
    states: list[State] = [{mark.name: mark for mark in before.segments}]
    for step in steps:
        gone = {mark.name for mark in step.originals}
        left = {name: mark for name, mark in states[-1].items() if name not in gone}
        states.append(left | {mark.name: mark for mark in step.put if mark.name.endswith(LOG)})
    return states


def difference(found: State, left: State, removed: Set[str]) -> str:
    """The first file that is not what the run left; there is one. removed: by the run."""
    for name in sorted(found.keys() | left.keys()):
        now, then = found.get(name), left.get(name)
        if now == then:
            continue
        if now is None:
            return f"{name}, which the run left, is gone: deleted or cleaned again"
        if then is None:
            what = "which the run removed, is there again"
            return f"{name}, {what if name in removed else 'which the run did not leave, is there'}"
        if now.size_bytes != then.size_bytes:
            return f"{name} has {now.size_bytes} bytes, the run left {then.size_bytes}"
        return f"{name} has other bytes than those that the run left"
    raise AssertionError("the log is as the run left it")
