"""A Java that does not come to listen is named with the cause, and left behind by nobody."""

import errno
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import psutil
import pytest

from cleaner_jobs import patience
from cleaner_jobs.signals import deferred_signals
from cleaner_jobs.spark import gateway
from cleaner_jobs.spark.gateway import CONNECTION_VARIABLE, JavaStartError, Waiting, start_java
from storage.files.local import LocalFiles

SLEEPS = ("sh", "-c", "exec sleep 1000")
LAUNCHES = ("sh", "-c", "sleep 1000; exec sleep 1000")  # as Spark's launcher, with a child
NOTHING = Waiting()


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path) -> Iterator[None]:
    before = processes_below_this()
    yield
    assert os.listdir(tmp_path) == ["log"]
    assert processes_below_this() <= before


def processes_below_this() -> set[psutil.Process]:
    """Some may be those of other tests."""
    return set(psutil.Process().children(recursive=True))


def start(tmp_path: Path, *words: str, waiting: Waiting = NOTHING) -> None:
    with (tmp_path / "log").open("wb") as log:
        start_java(words, os.environ, log, waiting)


def test_port_and_secret_are_what_java_writes(tmp_path: Path) -> None:
    script = (
        f'[ -d "{tmp_path}"/connection-* ] || exit 1\n'
        # port 258, then a secret of three bytes
        rf"printf '\000\000\001\002\000\000\000\003abc' > ${CONNECTION_VARIABLE}"
    )
    with (tmp_path / "log").open("wb") as log:
        started = start_java(["sh", "-c", script], os.environ, log)
    started.process.communicate()
    assert (started.port, started.secret) == (258, "abc")


def test_one_that_cannot_write_where_it_listens_is_no_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_named = LocalFiles.open_named

    def no_room(files: LocalFiles, path: str, mode: str = "rb") -> BinaryIO:
        if mode == "wb":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return open_named(files, path, mode)

    monkeypatch.setattr(gateway, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(LocalFiles, "open_named", no_room)
    with pytest.raises(OSError, match="No space left on device") as raised:
        start(tmp_path, *SLEEPS)
    assert raised.value.filename == str(tmp_path)


def test_one_that_does_not_listen_ends_after_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "LOOK_SECONDS", 0.01)
    monkeypatch.setenv(patience.VARIABLE, "0.05")
    said: list[str] = []
    with pytest.raises(JavaStartError, match="has not come to listen within"):
        start(tmp_path, *SLEEPS, waiting=Waiting(said.append))
    [line] = said
    assert line.startswith("waiting: Java, which was started, does not listen yet. The run ends")


@pytest.mark.parametrize("words", [SLEEPS, LAUNCHES])
def test_a_signal_ends_the_wait_and_all_that_was_started(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    before = processes_below_this()

    def interrupt_once_all_is_there() -> None:
        if len(processes_below_this() - before) == 1 + (words == LAUNCHES):
            os.kill(os.getpid(), signal.SIGINT)
        let_signals_through()

    with pytest.raises(KeyboardInterrupt), deferred_signals() as let_signals_through:
        start(tmp_path, *words, waiting=Waiting(lambda _: None, interrupt_once_all_is_there))


@pytest.mark.parametrize("code", ["0", "1"])
def test_one_that_has_ended_is_no_wait(code: str, tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(JavaStartError, match="ended before it listened"):
        start(tmp_path, "sh", "-c", f"exit {code}")
    assert time.monotonic() - began < 20
