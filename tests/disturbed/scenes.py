"""Small log directories, and the command that is disturbed while it is at work on each.

Every way in which something is changed is among them, with few files, so that a command has some
hundred file operations and every one can be disturbed.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from cleaner_jobs.tasks import task
from compactor.planning import layout
from storage.file_names import DELETED, INDEX, LOG, SNAPSHOT, TIME_INDEX, file_name
from storage.formats import clean_shutdown
from tests.bounds.cases import SMALL, ExactBuffers
from tests.crash.stories import (
    COMPACT,
    FARTHER,
    NEVER_CLEANED,
    NOW_MS,
    Batches,
    expired,
    plain,
    timed,
    write_checkpoints,
    write_partition,
)
from tests.support.file_operations import Before, FileOperations
from tests.support.local_command import Ended, run_command, use_local_rounds
from tests.support.local_round import engine_of
from tests.support.made_log import ABORT_KEY, COMMIT_KEY, marker, of_producer
from tests.support.one_thread import use_one_thread

LOGS, KEPT, WORK, COPY = "logs", "kept", "work", "copy"


class Place(NamedTuple):
    """Where a scene is set."""

    root: Path

    @property
    def logs(self) -> Path:
        return self.root / LOGS

    @property
    def kept(self) -> Path:
        return self.root / KEPT

    @property
    def copy(self) -> Path:
        return self.root / COPY

    @property
    def work(self) -> Path:
        return self.root / WORK


@dataclass(frozen=True)
class Scene:
    """A log directory, and what is done to it."""

    name: str
    build: Callable[[Place], None]
    command: str  # run, recover or undo
    topics: Mapping[str, Mapping[str, str]]
    in_pieces: bool = False  # several tasks rewrite a group, and what they leave is joined
    keeps: bool = False  # the originals
    copies: bool = False  # works on a copy
    links: bool = False  # to large files that nobody changes in place
    local: bool = False  # the local engine hands the tasks out

    def words(self, place: Place) -> list[object]:
        """Of the command line."""
        if self.command == "undo":
            (run_dir,) = place.kept.iterdir()
            return ["undo", run_dir, "--format", "json"]
        configs = place.root / "topics.json"
        configs.write_text(json.dumps(self.topics))
        words: list[object] = [self.command, place.logs, "--topic-configs", configs]
        words += ["--format", "json"]
        if self.command == "run":
            words += ["--as-of", NOW_MS, "--any-clock", "--work-dir", place.work]
        if self.copies:
            words += ["--output", place.copy, *(["--link"] if self.links else [])]
        return [*words, "--keep-originals", place.kept] if self.keeps else words

    def play(self, place: Place, before: Before = lambda _: None) -> Ended:
        """Carry the command out, all of it in this thread, with buffers that have no room to spare.

        before: is asked ahead of each of its file operations.
        """
        words = self.words(place)
        with self._staged(place), FileOperations(place.root, before).listening():
            return run_command(*words)

    @contextmanager
    def _staged(self, place: Place) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            use_one_thread(patch)
            use_local_rounds(patch, place.work, tasks=engine_of(self.local))
            for (module, name), size in SMALL.items():
                patch.setattr(module, name, size)
            patch.setattr(task, "WORKER_BUFFERS", ExactBuffers())
            if self.in_pieces:
                for name in ("STRETCH_BYTES", "TASK_BYTES"):
                    patch.setattr(layout, name, 60)
                patch.setattr(layout, "LOG_COST_BYTES", 1)
            yield


# two groups: 0 and 4 become one, and of 7 b is left
ORDERS: Mapping[int, Batches] = {
    0: [plain(0, "abk"), of_producer(plain(3, "c"), 1)],  # aborted at 5
    4: [of_producer(plain(4, "d"), 2), marker(5, 1, ABORT_KEY), plain(6, "a")],
    7: [marker(7, 2, COMMIT_KEY), expired(8, "K"), plain(9, "bxx", 180)],
    12: [plain(12, "ax")],
}
ABORTED = {4: [(1, 3, 5, 4)]}
RETAINED: Mapping[int, Batches] = {
    0: [timed(plain(0, "abc"), 1000)],
    3: [timed(plain(3, "agh"), 7000)],
    6: [timed(plain(6, "bij"), 8000)],
}
TOPICS = {"orders": COMPACT | {"segment.bytes": "700"}, "retained": NEVER_CLEANED}


def _cleaned(place: Place) -> None:
    """A log to clean, one of which retention takes a segment, one with something left over."""
    write_partition(place.logs / "orders-0", ORDERS, ABORTED)
    write_partition(place.logs / "retained-0", RETAINED)
    left = write_partition(place.logs / "left-0", {0: [plain(0, "a")], 1: []})
    (left / (file_name(0, LOG) + DELETED)).touch()
    write_checkpoints(place.logs)


def _joined(place: Place) -> None:
    write_partition(place.logs / "orders-0", ORDERS, ABORTED)
    write_checkpoints(place.logs)


def _rolled(place: Place) -> None:
    """A log of which retention takes all, so that it gets a new active segment."""
    write_partition(place.logs / "retained-0", {0: RETAINED[0], 3: [timed(plain(3, "a"), 2000)]})
    write_checkpoints(place.logs)


def _split(place: Place) -> None:
    far: Batches = [plain(3, "abc"), plain(FARTHER, "be")]
    segments: Mapping[int, Batches] = {0: far[:1], FARTHER + 2: [plain(FARTHER + 2, "a")]}
    write_partition(place.logs / "split-0", segments, {}, far)
    write_checkpoints(place.logs)


def _unclean(place: Place) -> None:
    """What a broker leaves that is killed: a torn end, an index of zeros, one that is missing."""
    path = write_partition(place.logs / "orders-0", ORDERS, ABORTED)
    write_checkpoints(place.logs)
    (place.logs / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    (place.logs / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    with (path / file_name(12, LOG)).open("ab") as log:
        log.write(b"torn")
    (path / file_name(12, INDEX)).write_bytes(bytes(64))
    (path / file_name(7, INDEX)).unlink()
    (path / file_name(4, TIME_INDEX)).write_bytes(b"")
    (path / file_name(7, SNAPSHOT)).unlink()


def _after(scene: Scene, place: Place) -> None:
    """Of an undoing: what is to be undone."""
    scene.build(place)
    ended = scene.play(place)
    assert ended.code == 0, ended
    shutil.rmtree(place.work)


CLEANED = Scene("cleaned", _cleaned, "run", TOPICS, keeps=True)
ROLLED = Scene("rolled", _rolled, "run", TOPICS, keeps=True)
SCENES = (
    CLEANED,
    Scene("joined", _joined, "run", TOPICS, in_pieces=True, local=True),
    ROLLED,
    Scene("split", _split, "run", {"split": COMPACT}, local=True),
    Scene("recovered", _unclean, "recover", TOPICS),
    Scene("undone", partial(_after, CLEANED), "undo", TOPICS),
    Scene("unrolled", partial(_after, ROLLED), "undo", TOPICS),
)
COPIES = (
    Scene("copied", _cleaned, "run", TOPICS, copies=True),
    Scene("linked", _cleaned, "run", TOPICS, copies=True, links=True, local=True),
    Scene("copied-unclean", _unclean, "run", TOPICS, copies=True),
)
