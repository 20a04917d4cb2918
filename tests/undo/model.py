"""What has to be true of a log, and of each kept run, after every step. It knows no code of ours.

A log is its files. Where these are what a run left, and whatever was appended after that, an
undoing of the run makes them what they were before it, and the same more. Where they are on the
way to it, since the run was killed, or another one like it was, it may. Else it changes nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

Files = dict[str, bytes]  # every .log by name; or what was appended to each


class Must(Enum):
    """What an undoing has to do."""

    UNDO = auto()
    STAY = auto()  # change nothing, whatever it says
    EITHER = auto()


@dataclass(eq=False)
class KeptRun:
    """A run that has kept what it replaced."""

    topic: int  # which of those that had the name
    before: Files
    after: Files
    appended: int  # how often before it
    entries: tuple[int | None, int | None]  # of the checkpoints before it: cleaner, log start
    has_deleted: bool = False  # by retention
    was_killed: bool = False
    is_discarded: bool = False
    was_undone: bool = False
    runs_since: int = 0  # that were not undone
    others_since: int = 0  # other changes than by runs and brokers that append

    def ways(self) -> Iterator[Files]:
        """Between before and after: segments go from the front, in a swap and by retention."""
        for cut in sorted(self.before.keys() | self.after.keys()):
            done = {name: data for name, data in self.after.items() if name < cut}
            yield done | {name: data for name, data in self.before.items() if name >= cut}
        for first in sorted(self.after) if self.was_killed else ():
            yield {name: data for name, data in self.after.items() if name > first}


class Model:
    """One log, from its first segment on."""

    def __init__(self, files: Files, has_id: bool = True) -> None:
        """has_id: its topic has one, so that one that is created anew is known for another."""
        self.files, self._has_id = files, has_id
        self.topic = 0
        self.appended: list[Files] = []
        self.kept: list[KeptRun] = []

    def ran(self, files: Files) -> None:
        """A run is over, or was killed."""
        for kept in self.kept:
            kept.runs_since += 1
        self.files = files

    def lost(self, files: Files) -> None:
        """Old segments have gone, or everything has."""
        for kept in self.kept:
            kept.others_since += files != self.files
        self.files = files

    def created(self, files: Files) -> None:
        self.topic += 1
        self.lost(files)

    def took(self, data: Files) -> None:
        """More was appended."""
        self.appended.append(data)
        self.files = _with(self.files, [data])

    def undoing(self, kept: KeptRun) -> tuple[Must, Files]:
        """What it must do, and what the log is once it is done."""
        is_other = kept.topic != self.topic
        if kept.is_discarded or kept.was_undone or (is_other and self._has_id):
            return Must.STAY, self.files
        since = self.appended[kept.appended :]
        tails = [since[count:] for count in range(len(since) + 1)]
        for more in tails:
            if self.files == _with(kept.after, more):
                undone = _with(kept.before, more)
                # another run with the same end may have moved the cleaner checkpoint
                is_free = kept.runs_since or undone == self.files or is_other
                return Must.EITHER if is_free else Must.UNDO, undone
        for more in tails:
            if any(self.files == _with(way, more) for way in kept.ways()):
                return Must.EITHER, _with(kept.before, more)
        if kept.was_killed and kept.runs_since and not kept.others_since:
            # a later run may have left what this one would have left
            return Must.EITHER, _with(kept.before, since)
        return Must.STAY, self.files

    def undid(self, undone: KeptRun, files: Files) -> None:
        """It has been done."""
        self.files = files
        if undone.before != undone.after and not undone.was_undone:
            undone.was_undone = True
            for kept in self.kept[: self.kept.index(undone)]:
                kept.runs_since -= 1


def filled(files: Files) -> Files:
    """Without empty segments: a killed run leaves an active one that it made before it deleted."""
    return {name: data for name, data in files.items() if data}


def _with(files: Files, appended: list[Files]) -> Files:
    found = dict(files)
    for data in appended:
        for name, more in data.items():
            found[name] = found.get(name, b"") + more
    return found
