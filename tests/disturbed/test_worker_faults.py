"""What can go wrong between the local engine's driver and its workers, and what a run makes of it.

Processes, memory or file descriptors that are lacking; workers whose answers are wrong. What their
tasks do with files is met by the other campaigns: it is the same on Spark.
"""

import errno
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cleaner_jobs.local import worker_pool
from cleaner_jobs.local.local_engine import MOST_TRIES
from cleaner_jobs.local.worker_pool import WorkerPool
from compactor.log_dirs.set_aside_memory import SET_ASIDE
from compactor.planning import layout
from storage.errors import CleaningFailedError
from tests.disturbed import faulty_host
from tests.disturbed.campaign import scenes_named
from tests.disturbed.faulty_host import FAULT, FAULTS, MARKS, TIMES
from tests.disturbed.scenes import Place
from tests.disturbed.stage import Files, files_in
from tests.support.command_process import PROJECT
from tests.support.file_states import open_files
from tests.support.inline_workers import inline_local_engine
from tests.support.local_command import Ended, run_command, use_local_rounds

ALWAYS = 1000
(JOINED,) = scenes_named(["joined"])  # several tasks in each stage
# what a run says at last that a worker has failed again and again
GIVEN_UP = {
    "no process for a worker": "the workers' process ended with exit code 1: BlockingIOError: ",
    "no process for another worker": "the workers' process ended with exit code 1: BlockingIOError",
    "no memory for a worker": "[Errno 12] Cannot allocate memory",
    "no room for the host": "the workers' process ended with exit code 1: no room for this process",
    "no pickle": worker_pool.NO_ANSWER,
    "no rows": worker_pool.NO_ANSWER,
    "no answer": worker_pool.NO_ANSWER,
    "an answer to another try": worker_pool.NO_ANSWER,
}
# what it says of a task that has failed, which is not tried again
FAILED = {
    "no memory for a task": "MemoryError",
    "no descriptors for a task": "Too many open files",
    "a good task is said to have failed": "a task failed: OSError: a lie",
}
LIES = (
    *("nothing is returned", "a row is missing", "each row comes twice"),
    *("rows of the task before", "an answer twice"),
)


class Scene:
    """A log directory, the run over it, and what this leaves when nothing goes wrong."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.place, self._patch = Place(root / "scene"), patch
        self.place.logs.mkdir(parents=True)
        JOINED.build(self.place)
        self.before = self.files()
        for name in ("STRETCH_BYTES", "TASK_BYTES"):
            patch.setattr(layout, name, 60)
        for name in ("LOG_COST_BYTES", "SMALLEST_SHARE_BYTES"):
            patch.setattr(layout, name, 1)
        patch.setattr(worker_pool, "process_count", lambda: 2)
        patch.syspath_prepend(str(PROJECT))
        self._marks, self._rounds = root / "marks", root / "rounds"

    def files(self) -> Files:
        """But for the memory of logs that were set aside."""
        found = files_in(self.place.logs)
        return {name: data for name, data in found.items() if name != SET_ASIDE}

    def run(self) -> Ended:
        ended = run_command(*JOINED.words(self.place), "--engine", "local")
        assert "internal error" not in ended.error + ended.out
        assert "Traceback" not in ended.error
        assert ended.code == 1 or not list(self.place.work.iterdir())
        return ended

    def run_into(self, fault: str, times: int) -> Ended:
        """Run beside workers that have a fault so many times."""
        self._marks.mkdir()
        with self._patch.context() as patch:
            patch.setattr(worker_pool, "HOST_MODULE", faulty_host.__name__)
            for name, value in ((FAULT, fault), (MARKS, str(self._marks)), (TIMES, str(times))):
                patch.setenv(name, value)
            ended = self.run()
        assert self.happened, "the fault was not met"
        return ended

    def run_again(self) -> Ended:
        """Run with nothing in the way. Its tasks run in this process: workers take a second."""
        with self._patch.context() as patch:
            use_local_rounds(patch, self._rounds, tasks=inline_local_engine())
            return self.run()

    @property
    def happened(self) -> int:
        return len([*self._marks.iterdir()])


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def cleaned(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """What a run leaves that nothing disturbs."""
    with pytest.MonkeyPatch.context() as patch:
        scene = Scene(tmp_path_factory.mktemp("cleaned"), patch)
        assert scene.run().code == 0
        assert scene.files() != scene.before
        return scene.files()


@pytest.mark.parametrize("fault", GIVEN_UP)
def test_what_happens_once_is_made_up_for(scene: Scene, cleaned: Files, fault: str) -> None:
    ended = scene.run_into(fault, 1)
    assert ended.code == 0, ended
    assert "Its task is tried again" in ended.error
    assert scene.files() == cleaned


@pytest.mark.parametrize("fault", ["no process for another worker", "no pickle"])
def test_what_goes_on_ends_the_run_which_names_it(scene: Scene, cleaned: Files, fault: str) -> None:
    ended = scene.run_into(fault, ALWAYS)
    assert ended.code == 1, ended
    assert scene.happened >= MOST_TRIES
    last = ended.error.splitlines()[-1]
    assert GIVEN_UP[fault] in last
    assert "Its task was tried 4 times" in last
    if "Nothing was changed." in last:
        assert_unchanged_then_cleaned(scene, cleaned)
    else:  # a worker had been started, and has done its part before it was ended
        assert "swapped in and stay" in last
        assert_cleaned_then(scene, cleaned)


@pytest.mark.parametrize("fault", FAILED)
def test_a_task_that_fails_is_not_tried_again(scene: Scene, cleaned: Files, fault: str) -> None:
    ended = scene.run_into(fault, 1)
    assert ended.code in (1, 4), ended
    assert FAILED[fault] in ended.out + ended.error
    assert "tried again" not in ended.error
    assert_unchanged_then_cleaned(scene, cleaned)


@pytest.mark.parametrize(
    ("fault", "times"), [*((fault, 1) for fault in LIES), ("rows of the task before", ALWAYS)]
)
def test_rows_that_are_not_those_of_the_task_change_no_log(
    scene: Scene, cleaned: Files, fault: str, times: int
) -> None:
    ended = scene.run_into(fault, times)
    assert ended.code in (0, 1, 4), ended
    if ended.code == 0:  # the lie made no difference
        assert scene.files() == cleaned
    else:
        assert_unchanged_then_cleaned(scene, cleaned)


def assert_unchanged_then_cleaned(scene: Scene, cleaned: Files) -> None:
    """Nothing was changed, and the next run does what this one has not."""
    assert scene.files() == scene.before
    assert_cleaned_then(scene, cleaned)


def assert_cleaned_then(scene: Scene, cleaned: Files) -> None:
    """The next run does what this one has not."""
    (scene.place.logs / SET_ASIDE).unlink(missing_ok=True)  # or the log would be left alone
    assert scene.run_again().code == 0
    assert scene.files() == cleaned


def test_each_fault_is_met() -> None:
    assert {*GIVEN_UP, *FAILED, *LIES} == {*FAULTS}


def failing(error: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise OSError(error, os.strerror(error))

    return fail


@pytest.mark.parametrize(
    ("owner", "name", "error"),
    [
        (os, "memfd_create", errno.EMFILE),
        (socket, "socketpair", errno.ENFILE),
        (subprocess, "_fork_exec", errno.EAGAIN),
        (subprocess, "_fork_exec", errno.ENOMEM),
    ],
)
def test_a_driver_that_can_start_no_process_says_why_and_leaves_nothing_open(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, error: int
) -> None:
    open_before = open_files()
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, failing(error))
        with pytest.raises(CleaningFailedError) as raised:
            WorkerPool(2)
    assert str(raised.value).startswith("no worker process can be started: ")
    assert str(raised.value).endswith(os.strerror(error))
    assert open_files() == open_before


def test_a_run_that_can_start_no_process_changes_nothing(
    scene: Scene, cleaned: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "_fork_exec", failing(errno.EAGAIN))
        ended = scene.run()
    assert ended.code == 1
    last = ended.error.splitlines()[-1]
    assert last.endswith(f"{os.strerror(errno.EAGAIN)}. Nothing was changed.")
    assert_unchanged_then_cleaned(scene, cleaned)
