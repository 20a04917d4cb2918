"""SIGKILL between two file operations of a run into a copy: the original stays, and no manifest.

Each run is a process of its own, forked from one that has loaded everything.
"""

import os
import shutil
import signal
import sys
from pathlib import Path

from compactor import api
from tests.compactor.log_dirs.test_directory_state import CHANGING
from tests.disturbed.copied import CopyStage, is_finished
from tests.disturbed.scenes import COPIES, Place
from tests.support.command_process import compactor
from tests.support.file_operations import Operation
from tests.support.file_states import state_of
from tests.support.local_command import run_command

KILLS = 16  # of a scene
HERE = "tests.disturbed.test_killed_copy"


def killed_at(stage: CopyStage, number: int) -> None:
    """Run it in a child of this process, which kills itself before that operation."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), status
        return
    count = 0

    def before(_: Operation) -> None:
        nonlocal count
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    try:
        stage.scene.play(stage.place, before)
    finally:
        os._exit(0)


def try_to_change(place: Place, name: str) -> None:
    """Let a command work on a copy that was cut short: it is refused, or finds no log there."""
    (place.root / "records").write_text('{"key": "YQ==", "value": "YQ=="}\n')
    (place.root / "other").mkdir(exist_ok=True)
    (place.root / "other" / "meta.properties").write_text("version=1\n")
    places = {each: str(place.root / each) for each in ("records", "other")}
    places |= {"copy": str(place.copy), "settings": str(place.root / "topics.json")}
    ended = run_command(*name.split(), *(word.format_map(places) for word in CHANGING[name]))
    assert ended.code in (2, 3), (name, ended)


def check(root: Path) -> None:
    """All kills; an AssertionError where one does harm."""
    for scene in COPIES:
        place = root / scene.name
        place.mkdir()
        stage = CopyStage(scene, place)
        for number in range(0, len(stage.operations), len(stage.operations) // KILLS):
            original = stage.reset()
            killed_at(stage, number)
            operation = stage.operations[number]
            assert state_of(stage.place.logs) == original, operation
            copy = stage.place.copy
            if is_finished(copy):
                assert api.verify_manifest(str(copy)) == [], operation
                assert stage.copy() == stage.end, operation
            elif copy.exists() and [*copy.iterdir()]:
                for name in CHANGING.keys() - {"undo"}:  # which is of another directory
                    try_to_change(stage.place, name)
                    assert state_of(stage.place.logs) == original, (operation, name)
                refused = stage.scene.play(stage.place)
                assert refused.code == 3, (operation, refused)
                is_begun = [path.name for path in copy.iterdir()] != [".lock"]
                way_on = f"rm -r {copy}" if is_begun else "remove that file"
                assert way_on in " ".join(refused.error.split()), (operation, refused)
            shutil.rmtree(copy, ignore_errors=True)
            assert stage.scene.play(stage.place).code == 0, operation
            assert stage.copy() == stage.end, operation


def test_no_kill_harms_the_original_or_leaves_a_copy_that_looks_whole(tmp_path: Path) -> None:
    code = f"from pathlib import Path; from {HERE} import check; check(Path({str(tmp_path)!r}))"
    done = compactor(launcher=(sys.executable, "-c", code))
    assert done.returncode == 0, done.stderr
