"""The lock of a log directory: who holds it, in words, and two threads that take or look at it."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import psutil
import pytest

from compactor import Log, LogManager, LogOptions
from storage.files.local import LocalFiles
from storage.log import log_dir_lock
from storage.log.log_dir_lock import (
    LOCK_FILE,
    LogDirLockedError,
    is_locked,
    lock_log_dir,
    require_free,
)
from storage.log.scheduler import ManualScheduler
from tests.support.command_process import PROJECT
from tests.support.lock_holding import held_by_another, holding


@pytest.fixture
def holder(tmp_path: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """A process that holds the lock, with a command as a broker's."""
    command = holding(Path(".lock"), "kafka.Kafka")  # which no temporary directory makes too long
    with subprocess.Popen(command, stdin=-1, stdout=-1, cwd=tmp_path) as process:
        assert process.stdout is not None and process.stdout.readline() == b"locked\n"
        yield process
        process.communicate()


@pytest.mark.parametrize("way", [require_free, lambda path: lock_log_dir(path).__enter__()])
def test_the_process_and_its_command_are_named(
    tmp_path: Path, holder: "subprocess.Popen[bytes]", way: object
) -> None:
    assert callable(way)
    python = os.path.basename(sys.executable)
    told = f"process {holder.pid} ({python} kafka.Kafka .lock), which runs since "
    with pytest.raises(LogDirLockedError) as raised:
        way(str(tmp_path))
    _, found, rest = str(raised.value).partition(told)
    assert found
    began = datetime.strptime(
        rest.partition(". Stop the broker, or wait")[0], "%Y-%m-%dT%H:%M:%S%z"
    )
    assert abs(began.timestamp() - psutil.Process(holder.pid).create_time()) < 2


def test_a_process_that_cannot_be_looked_at_has_its_number(
    tmp_path: Path, holder: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    def hidden(_: LocalFiles, path: str) -> bytes:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(LocalFiles, "read_bytes", hidden)
    with pytest.raises(LogDirLockedError, match=rf"process {holder.pid}\. Stop the broker"):
        require_free(str(tmp_path))


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (
            "/usr/bin/java -Xmx1G -cp /a:/b -Dx=y kafka.Kafka /etc/server.properties",
            "java kafka.Kafka /etc/server.properties",
        ),
        ("python -m compactor run /data", "python run /data"),
        ("java password=abc kafka.Kafka", "java kafka.Kafka"),
        ("sh " + "x" * 200, "sh " + "x" * 96 + "…"),
        ("", ""),
    ],
)
def test_a_command_is_shown_without_its_options_and_secrets(words: str, shown: str) -> None:
    assert log_dir_lock.shown_command(words.split()) == shown


FROM_OUTSIDE = """
import sys
from storage.log.log_dir_lock import LogDirLockedError, lock_log_dir
try:
    with lock_log_dir(sys.argv[1]):
        print("free")
except LogDirLockedError:
    print("held")
"""


def seen_from_outside(log_dir: Path) -> str:
    words = [sys.executable, "-c", FROM_OUTSIDE, str(log_dir)]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("look", [require_free, lambda path: open_log(Path(path)).close()])
def test_a_look_at_the_lock_gives_none_away_that_is_taken_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: object
) -> None:
    """To close any descriptor of the file drops the locks of the whole process on it."""
    (tmp_path / LOCK_FILE).touch()
    is_held, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        with lock_log_dir(str(tmp_path)):
            is_held.set()
            is_over.wait(60)

    thread = threading.Thread(target=hold)

    def meanwhile(descriptor: int) -> bool:
        if thread.ident is None:
            thread.start()
            is_held.wait(0.3)  # where nothing keeps it waiting it is there by then
        return is_locked(descriptor)

    monkeypatch.setattr("storage.log.log_dir_lock.is_locked", meanwhile)
    assert callable(look)
    try:
        look(str(tmp_path))
        assert is_held.wait(60)
        assert seen_from_outside(tmp_path) == "held"
    finally:
        is_over.set()
        thread.join()


def open_log(log_dir: Path) -> Log:
    scheduler = ManualScheduler(lambda: 0)
    return Log.open(str(log_dir / "t-0"), LogOptions(clock=lambda: 0, scheduler=scheduler))


@pytest.fixture
def other_process(tmp_path: Path) -> Iterator[None]:
    with held_by_another("storage.log", f"LogManager([{str(tmp_path)!r}])"):
        yield


@pytest.mark.usefixtures("other_process")
def test_a_log_of_another_process_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(LogDirLockedError, match="a broker or another run works in this"):
        open_log(tmp_path)
    assert not (tmp_path / "t-0").exists()


def test_a_log_of_a_manager_is_not_opened_beside_it(tmp_path: Path) -> None:
    """Through a second one it could be truncated, and the cleaner's checkpoint would not know."""
    with LogManager([str(tmp_path)]) as manager:
        manager.create(("t", 0))
        with pytest.raises(LogDirLockedError, match="this process works in this log directory"):
            open_log(tmp_path)
        assert seen_from_outside(tmp_path) == "held"
    assert os.listdir(tmp_path / "t-0")
    open_log(tmp_path).close()
