"""For all tests: no example of Hypothesis is too slow because a kernel is compiled meanwhile."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from storage.formats import clean_shutdown
from tests.compactor.small_log import build
from tests.support.local_command import use_local_rounds
from tests.support.local_round import LocalRound, open_local_round
from tests.support.printed_commands import collected

# Who runs them in the background of a shell has Ctrl-C ignored, and so would all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("kernels", deadline=None)
settings.load_profile("kernels")


def pytest_collection_finish() -> None:
    """Keep the collector of garbage from looking at thousands of tests again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_the_disk() -> Iterator[None]:
    """A sync in this process is called, recorded and failed as any other, and not waited for.

    Nothing here cuts the power but `tests/crash`, which lays out by itself what a cut leaves. Real
    ones are those of `tests/storage`, and of whatever runs in a process of its own.
    """
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(os, "fsync", _look_at)
        yield


def _look_at(file: int) -> None:
    os.fstat(file)  # fails where a sync would: of what is not open


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalRound:
    """Rounds in this process and without Spark, with `tmp_path / "work"` to work in."""
    return open_local_round(tmp_path / "work", monkeypatch)


@pytest.fixture
def without_spark(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """For tests of what commands say of logs, wherever their tasks run."""
    use_local_rounds(monkeypatch, tmp_path_factory.mktemp("rounds"))


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """With one small log, of a broker that was shut down cleanly."""
    directory = build(tmp_path / "log").parent
    clean_shutdown.write(str(directory))
    return directory


@pytest.fixture(autouse=True, scope="session")
def _printed_commands_are_right() -> Iterator[None]:
    """Each command that a message of any test prints is one that its program takes."""
    with collected():
        yield
