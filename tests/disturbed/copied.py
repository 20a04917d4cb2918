"""`run --output`, disturbed: whatever fails, the original stays, and no manifest says otherwise.

What the copy holds is only of use with a manifest: then it has to be what an undisturbed run makes.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from compactor import api
from compactor.log_dirs.directory_state import MANIFEST, UNFINISHED
from storage.files.disk_hints import wait_until_freed
from storage.log.log_dir import list_log_dir
from tests.disturbed.scenes import Place, Scene
from tests.disturbed.stage import Files, files_in, open_descriptors, unforeseen
from tests.support.file_operations import Operation
from tests.support.file_states import State, state_of
from tests.support.local_command import Ended

ENDINGS = {0: "done all the same", 1: "failed", 2: "no settings", 3: "refused", 4: "partly done"}


def is_finished(copy: Path) -> bool:
    """Whether it has a manifest, and the mark of an unfinished one is gone."""
    return (copy / MANIFEST).exists() and not (copy / UNFINISHED).exists()


class CopyStage:
    """Where a copy is made, and how that goes when nobody disturbs it."""

    def __init__(self, scene: Scene, root: Path) -> None:
        self.scene, self.place = scene, Place(root / "stage")
        self._beginning = root / "beginning"
        self.place.logs.mkdir(parents=True)
        scene.build(self.place)
        shutil.copytree(self.place.root, self._beginning, symlinks=True)
        self.operations: list[Operation] = []
        self._known_open = open_descriptors(self.place.root)
        ended = scene.play(self.place, self.operations.append)
        assert ended.code == 0, ended
        self.end = self.copy()

    def reset(self) -> State:
        """Everything as it was at the beginning; the original."""
        shutil.rmtree(self.place.root)
        shutil.copytree(self._beginning, self.place.root, symlinks=True)
        return state_of(self.place.logs)

    def copy(self) -> Files:
        """What stands in the copy, but for the manifest."""
        found = files_in(self.place.copy)
        found.pop(MANIFEST, None)
        return found

    def left_open(self) -> list[str]:
        wait_until_freed()  # what was removed is closed behind a run
        now = open_descriptors(self.place.root)
        new, self._known_open = now.items() - self._known_open.items(), now
        return sorted(f"{path} is left open" for _, path in new)


def problems_of(stage: CopyStage, original: State, ended: Ended) -> Iterator[str]:
    """What is wrong after a run that was disturbed."""
    yield from stage.left_open()
    yield from unforeseen(ended, ENDINGS)
    if state_of(stage.place.logs) != original:
        yield "the original is another"
    is_whole = is_finished(stage.place.copy)
    # one from which every log is missing is no log directory, and ends the run as failed
    has_logs = is_whole and list_log_dir(str(stage.place.copy)).partitions
    if is_whole and not has_logs and ended.code != 1:
        yield "a copy without a log is said to be one"
    if has_logs and api.verify_manifest(str(stage.place.copy)):
        yield "the manifest does not fit"
    if ended.code == 0 and not (is_whole and stage.copy() == stage.end):
        yield "said to be done, and is not"
    if ended.code == 4 and not is_whole:
        yield "partly done, without a manifest"
    if ended.code == 4 and json.loads(ended.out.splitlines()[-1])["copies"][0]["missing"]:
        missing = json.loads((stage.place.copy / MANIFEST).read_text())["missing"]
        if any((stage.place.copy / name).exists() for name in missing):
            yield "what is missing is there"
    shutil.rmtree(stage.place.copy, ignore_errors=True)
    again = stage.scene.play(stage.place)
    if again.code or stage.copy() != stage.end:
        yield f"the next run ends with {again.code}: {again.out} {again.error}"
    if state_of(stage.place.logs) != original:
        yield "the next run changes the original"


def error_untold(ended: Ended, error: int) -> Iterator[str]:
    """That an error was not told."""
    told = f"{ended.out} {ended.error}"
    if ended.code and error and os.strerror(error) not in told:
        yield f"the error is not told: {told}"
