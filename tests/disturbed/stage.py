"""A scene that is played again and again from the same beginning, each time disturbed elsewhere."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from storage.file_names import SEGMENT_SUFFIXES, SNAPSHOT, file_name
from storage.files.disk_hints import wait_until_freed
from tests.crash import checks
from tests.crash.checks import Ends, Log
from tests.crash.states import LOCK_FILE
from tests.disturbed.scenes import WORK, Place, Scene
from tests.support.file_operations import Operation
from tests.support.local_command import Ended

UNCHANGED = "Nothing was changed."

Names = frozenset[str]
Files = dict[str, bytes]  # by path, relative to the directory


class Outcome(NamedTuple):
    """How a command ended that was disturbed, and what is wrong with that."""

    disturbance: str  # what, and at which operation
    kind: str  # of disturbance
    operation: str
    ending: str
    problems: Sequence[str]


def outcome_of(
    disturbance: object,
    kind: str,
    operation: Operation,
    ending: str | None,
    problems: Iterable[str],
) -> Outcome:
    """What came of a disturbance before an operation. ending: None for one that is unknown."""
    try:
        found = [*problems]
    except Exception as error:  # whatever a reader stumbles over is one
        found = [f"cannot be read: {error!r}"]
    name = f"{operation.kind} {operation.path}"
    return Outcome(str(disturbance), kind, name, ending or "unknown", found)


def unforeseen(ended: Ended, endings: Mapping[int, str]) -> Iterator[str]:
    """That a command ended as none does, or with an error that nobody has foreseen."""
    if ended.code not in endings:
        yield f"exit code {ended.code}"
    if "Traceback" in ended.error or "internal error" in ended.error:
        yield f"it was not foreseen: {ended.error}"


class State(NamedTuple):
    """What stands in the log directory.

    But for what a swap that was cut short may leave otherwise than one that was not, once it is
    settled: a lock file, empty segments between others, and snapshots, of which a loader removes
    those of a range that it finds replaced.
    """

    logs: dict[str, Log]
    names: Names  # of all files, relative to it


def files_in(path: Path) -> Files:
    return {
        str(found.relative_to(path)): found.read_bytes()
        for found in path.rglob("*")
        if found.is_file() and not found.is_symlink() and found.name != LOCK_FILE
    }


class Stage:
    """Where a scene is set, and how it goes when nobody disturbs it."""

    def __init__(self, scene: Scene, root: Path) -> None:
        self.scene, self.place = scene, Place(root / "stage")
        self._beginning = root / "beginning"
        self.place.logs.mkdir(parents=True)
        scene.build(self.place)
        self.files = files_in(self.place.logs)  # at the beginning
        shutil.copytree(self.place.root, self._beginning, symlinks=True)
        is_torn = scene.command == "recover"
        before = {} if is_torn else checks.logs_of(self.place.logs)
        self.operations: list[Operation] = []
        split: dict[str, Log] = {}

        def note(operation: Operation) -> None:
            self.operations.append(operation)
            if f"/{WORK}/" in operation.path and not split and not is_torn:
                split.update(checks.logs_of(self.place.logs))

        self._known_open = open_descriptors(self.place.root)
        ended = scene.play(self.place, note)
        assert ended.code == 0, ended
        self.end = self.state()
        after = checks.logs_of(self.place.logs)
        self.ends = Ends(before or after, after, split or before or after)
        assert not checks.changed_values(self.ends)

    def reset(self) -> None:
        """Everything as it was at the beginning."""
        shutil.rmtree(self.place.root)
        shutil.copytree(self._beginning, self.place.root, symlinks=True)

    def state(self) -> State:
        logs = self.place.logs
        found = (path.relative_to(logs) for path in logs.rglob("*") if path.is_file())
        names = {str(path) for path in found if path.suffix != SNAPSHOT} - {LOCK_FILE}
        found_logs = {}
        for name, log in checks.logs_of(logs).items():
            empty = {s.base_offset for s in log.segments[:-1] if not (s.log or s.offset_index)}
            names -= {
                f"{name}/{file_name(base, kind)}" for base in empty for kind in SEGMENT_SUFFIXES
            }
            segments = [s for s in log.segments if s.base_offset not in empty]
            found_logs[name] = log._replace(segments=segments, snapshots={})
        return State(found_logs, frozenset(names))

    def said_falsely(self, ended: Ended) -> list[str]:
        """That nothing was changed, where something is."""
        said = [line for line in ended.error.splitlines() if line.endswith(UNCHANGED)]
        now = files_in(self.place.logs) if said else self.files
        return [f"said {line!r}" for line in said if now != self.files]

    def left_open(self) -> list[str]:
        """Files that have been left open since this was last asked."""
        wait_until_freed()  # what was removed is closed behind a run
        now = open_descriptors(self.place.root)
        new, self._known_open = now.items() - self._known_open.items(), now
        return sorted(f"{path} is left open" for _, path in new)


def open_descriptors(root: Path) -> dict[int, str]:
    """The files below root that this process has open."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # that of the listing
            continue
        if path.startswith(str(root)):
            found[int(name)] = path
    return found
