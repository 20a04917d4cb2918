"""A lock that is held is told with the process that holds it, and what that is."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import psutil
import pytest

from storage.log import log_dir_lock
from storage.log.log_dir_lock import LogDirLockedError, lock_log_dir, require_free
from tests.support.lock_holding import holding


@pytest.fixture
def holder(tmp_path: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """A process that holds the lock, with a command as a broker's."""
    command = holding(tmp_path / ".lock", "kafka.Kafka")
    with subprocess.Popen(command, stdin=-1, stdout=-1) as process:
        assert process.stdout is not None and process.stdout.readline() == b"locked\n"
        yield process
        process.communicate()


@pytest.mark.parametrize("way", [require_free, lambda path: lock_log_dir(path).__enter__()])
def test_the_process_and_its_command_are_named(
    tmp_path: Path, holder: "subprocess.Popen[bytes]", way: object
) -> None:
    assert callable(way)
    python = os.path.basename(sys.executable)
    told = f"process {holder.pid} ({python} kafka.Kafka {tmp_path}/.lock), which runs since "
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
    def hidden(path: str) -> bytes:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(log_dir_lock, "read_bytes", hidden)
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
