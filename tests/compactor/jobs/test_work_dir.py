"""The work directory is private, has what tasks expect, and does not outlive the run for long."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from compactor.errors import CleaningFailedError
from compactor.jobs import work_dir
from compactor.jobs.work_dir import OWNER, SUBDIRECTORIES, open_work_dir
from storage.files.disk_hints import background_closes_deferred
from tests.support.file_states import open_files


def test_it_is_made_private_and_removed_with_all_that_is_in_it(tmp_path: Path) -> None:
    with open_work_dir(str(tmp_path), "cafe") as path:
        assert os.path.dirname(path) == str(tmp_path)
        assert "cafe" in os.path.basename(path)
        assert os.stat(path).st_mode & 0o777 == 0o700
        assert sorted(os.listdir(path)) == sorted([*SUBDIRECTORIES, OWNER])
        Path(path, "parts", "x").write_bytes(b"x")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("most_held", [0, 3, 64])
def test_nobody_waits_for_the_room_of_what_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_held: int
) -> None:
    """It is all removed, and then closed; of what cannot be held open the room is waited for."""
    monkeypatch.setattr(work_dir, "MOST_HELD", most_held)
    monkeypatch.setattr(work_dir, "can_remove_while_open", lambda *_: True)
    before = open_files()
    with background_closes_deferred(), open_work_dir(str(tmp_path), "cafe") as path:
        for name in "abc":
            Path(path, "parts", name).write_bytes(b"x")
    assert os.listdir(tmp_path) == []
    assert open_files() == before


def test_it_is_removed_when_the_run_fails(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), open_work_dir(str(tmp_path), "cafe"):
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_it_is_removed_when_an_interrupt_arrives_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = tempfile.mkdtemp

    def make_and_be_interrupted(prefix: str, dir: str) -> str:
        path = make(prefix=prefix, dir=dir)
        signal.raise_signal(signal.SIGINT)
        return path

    monkeypatch.setattr(tempfile, "mkdtemp", make_and_be_interrupted)
    with pytest.raises(KeyboardInterrupt), open_work_dir(str(tmp_path), "cafe"):
        pass
    assert os.listdir(tmp_path) == []


def test_by_default_it_is_where_temporary_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_work_dir(None, "cafe") as path:
        assert os.path.dirname(path) == str(tmp_path)


def test_the_directory_that_it_stands_in_is_made_where_it_is_not_there(tmp_path: Path) -> None:
    """As after a reboot, which empties a tmpfs."""
    parent = tmp_path / "gone" / "work"
    with open_work_dir(str(parent), "cafe") as path:
        assert os.path.dirname(path) == str(parent)
        assert os.stat(parent).st_mode & 0o777 == 0o700
    assert os.listdir(parent) == []


def test_where_it_cannot_be_made_the_run_fails_in_plain_words(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    inside = str(tmp_path / "file" / "inside")
    failed = pytest.raises(CleaningFailedError, match=f"{inside}: Not a directory$")
    with failed, open_work_dir(inside, "cafe"):
        pytest.fail("there can be no such directory")


KILLED = """
import os, signal, sys
from compactor.jobs.work_dir import open_work_dir
with open_work_dir(sys.argv[1], "dead") as path:
    print(path, flush=True)
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()
"""


def other_run(parent: Path, how: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", KILLED, str(parent), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_what_a_killed_run_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    with other_run(tmp_path, "killed") as killed:
        assert killed.stdout is not None
        left = killed.stdout.readline().strip()
        killed.wait()
    assert os.listdir(tmp_path) == [os.path.basename(left)]
    with open_work_dir(str(tmp_path), "cafe") as path:
        assert os.listdir(tmp_path) == [os.path.basename(path)]


def test_the_directory_of_a_live_run_stays(tmp_path: Path) -> None:
    with other_run(tmp_path, "live") as live:
        assert live.stdout is not None and live.stdin is not None
        its_own = live.stdout.readline().strip()
        with open_work_dir(str(tmp_path), "cafe"):
            assert os.path.isdir(its_own)
        live.stdin.close()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("whose", ["no owner", "another host", "a link", "a file", "a pipe"])
def test_what_is_not_surely_a_dead_run_of_this_host_stays(tmp_path: Path, whose: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / OWNER).write_text("another.example")
    parent = tmp_path / "work"
    parent.mkdir()
    left = parent / "compactor-dead-x"
    if whose == "a link":
        (elsewhere / OWNER).write_text(os.uname().nodename)
        left.symlink_to(elsewhere)
    elif whose == "a file":
        left.write_text("")
    else:
        left.mkdir()
        if whose == "another host":
            (left / OWNER).write_text("another.example")
        elif whose == "a pipe":
            os.mkfifo(left / OWNER)
    with open_work_dir(str(parent), "cafe"):
        pass
    assert os.listdir(parent) == [left.name]
    assert os.listdir(elsewhere) == [OWNER]
