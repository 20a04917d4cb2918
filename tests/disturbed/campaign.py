"""All disturbances of all scenes, in several processes, each outcome written down when it is known.

What a file of outcomes tells already is not tried again, so that a campaign may be stopped and gone
on with. Where another writer is at work the kernels stand between fences: one that goes a byte
beyond what it was given ends its process, and with it the campaign.
"""

import ctypes
import faulthandler
import json
import os
import random
import signal
from collections.abc import Container, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from tests.bounds.guarded import Fences, all_kernels
from tests.disturbed import errors, second_writer, writer_ending
from tests.disturbed.copied import CopyStage
from tests.disturbed.scenes import COPIES, SCENES, Scene
from tests.disturbed.stage import Outcome, Stage

ERRORS, WRITER = "errors", "writer"
PARTS = 32  # of a scene, each for one process
_DIE_WITH_PARENT = 1  # of prctl


class Campaign(NamedTuple):
    """What is tried."""

    who: str  # disturbs: ERRORS or WRITER
    scenes: tuple[str, ...]
    one_of: int  # every Nth disturbance
    outcomes: Path  # a file, which is added to

    def run(self, root: Path) -> None:
        """root: an empty directory, in memory if possible."""
        processes = ProcessPoolExecutor(os.cpu_count(), get_context("spawn"), _begin)
        parts = [(scene, part) for scene in self.scenes for part in range(PARTS)]
        try:
            tasks = [processes.submit(self.try_part, *part, root) for part in parts]
            for task in tasks:
                task.result()
        finally:
            processes.shutdown(cancel_futures=True)

    def try_part(self, scene: str, part: int, root: Path) -> None:
        """What of it has not been tried, in this process."""
        stage = _stage(scene, root)
        done = {told.disturbance for name, told in read(self.outcomes) if name == scene}
        one_of, first = self.one_of * PARTS, self.one_of * part
        for outcome in disturb(stage, self.who, one_of, first, done):
            with self.outcomes.open("ab", buffering=0) as out:  # so that a line is written at once
                out.write(f"{json.dumps([scene, *outcome])}\n".encode())


def _begin() -> None:
    """In each process: Ctrl-C ends the campaign, not the command in it, which goes on as long."""
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def disturb(
    stage: Stage | CopyStage, who: str, one_of: int, first: int = 0, done: Container[str] = ()
) -> Iterator[Outcome]:
    """Try every one_of-th disturbance from the first on, but for those that have been."""
    if who == ERRORS:
        failures = [*errors.failures_of(stage)][first::one_of]
        for one in failures:
            if str(one) not in done:
                if isinstance(stage, CopyStage):
                    yield errors.tried_on_copy(stage, one)
                else:
                    yield errors.tried(stage, one)
        return
    assert isinstance(stage, Stage), "a copy is nobody else's place of work"
    attacks = [*second_writer.attacks_of(stage)][first::one_of]
    with all_kernels(Fences(random.Random(first))):
        yield from (writer_ending.tried(stage, one) for one in attacks if str(one) not in done)


def read(outcomes: Path) -> Iterator[tuple[str, Outcome]]:
    """Each with its scene."""
    if outcomes.exists():
        for line in outcomes.read_text().splitlines():
            scene, *values = json.loads(line)
            yield scene, Outcome(*values)


@cache
def _stage(name: str, root: Path) -> Stage | CopyStage:
    (scene,) = scenes_named([name])
    own = root / f"{name}-{os.getpid()}"
    own.mkdir()
    return stage_of(scene, own)


def stage_of(scene: Scene, root: Path) -> Stage | CopyStage:
    return CopyStage(scene, root) if scene.copies else Stage(scene, root)


def scenes_named(names: Sequence[str]) -> list[Scene]:
    return [scene for scene in (*SCENES, *COPIES) if scene.name in names]
