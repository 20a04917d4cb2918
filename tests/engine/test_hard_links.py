"""A backup by hard links (`cp -al`) stays as it was, whatever a log manager does."""

import os
import random
import shutil
from pathlib import Path

import pytest

from storage.files.local import LOCAL
from tests.engine.pairs.story import ENDS, OPERATIONS, Place, Story

ROUNDS = 2


def bytes_in(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*.*")
            if path.is_file()}  # fmt: skip


@pytest.mark.parametrize("is_running", [False, True], ids=["closed", "running"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_backup_does_not_change(tmp_path: Path, name: str, is_running: bool) -> None:
    (tmp_path / "logs").mkdir()
    log_dirs = str(tmp_path / "logs" / "a"), str(tmp_path / "logs" / "b")
    story = Story(random.Random(name), Place(LOCAL, log_dirs, str(tmp_path / "work-")))
    story.begin()
    backups = {}
    for number in range(ROUNDS):
        if not is_running:
            story.manager.close()
        backup = tmp_path / f"backup-{number}"
        shutil.copytree(tmp_path / "logs", backup, copy_function=os.link)
        backups[backup] = bytes_in(backup)
        if not is_running:
            story.manager.start()
        for own in story.logs:
            story.log(own).follow_end()
            OPERATIONS[name][0](story, own)
            if story.is_closed:
                break
        if story.is_closed:
            story.is_closed = False
            story.manager.start()
    assert story.manager.handle_failed_directories() == []
    story.manager.close()
    assert {backup: bytes_in(backup) for backup in backups} == backups
    assert name in ENDS or story.logs[0].is_known
