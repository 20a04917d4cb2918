"""python -m tests.disturbed errors|writer [--scene NAME] [--one-of N]: commands, disturbed.

errors: each file operation of each command fails, with each error that it can fail with, once and
from then on. writer: between each two of them another writer does each of the things he can do.
Told are counts, and what was lost; exit 1 if anything was. --one-of: every Nth alone.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from compactor.host.output import print_line
from tests.disturbed import errors, second_writer, writer_verdict
from tests.disturbed.scenes import SCENES, Scene
from tests.disturbed.stage import Stage

TOLD = 20  # problems
IN_MEMORY = Path("/dev/shm")


class Tried(Protocol):
    """One disturbance, and what became of it."""

    @property
    def operation(self) -> str: ...
    @property
    def code(self) -> int: ...
    @property
    def problems(self) -> Sequence[str]: ...
    @property
    def counted_as(self) -> tuple[str, str]: ...


Trials = Callable[[Stage, int], Iterator[Tried]]


def by_errors(stage: Stage, one_of: int) -> Iterator[Tried]:
    for failure in [*errors.failures_of(stage)][::one_of]:
        yield errors.tried(stage, failure)


def by_a_writer(stage: Stage, one_of: int) -> Iterator[Tried]:
    for attack in [*second_writer.attacks_of(stage)][::one_of]:
        yield writer_verdict.tried(stage, attack)


WHO: dict[str, Trials] = {"errors": by_errors, "writer": by_a_writer}


def try_scene(scene: Scene, trials: Trials, one_of: int, root: Path) -> list[Tried]:
    """Disturb a scene; root: an empty directory."""
    return list(trials(Stage(scene, root), one_of))


def told(found: Sequence[Tried]) -> Iterator[str]:
    """Problems, then counts by what was done and how the command ended."""
    bad = [trial for trial in found if trial.problems]
    for trial in bad[:TOLD]:
        yield f"PROBLEM: {trial!s:.2000}"
    for (what, ending), count in sorted(Counter(trial.counted_as for trial in found).items()):
        yield f"{what}, {ending}: {count:,}"
    yield f"{len(found):,} tried, {len(bad):,} with a problem"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.disturbed", description=__doc__)
    parser.add_argument("who", choices=[*WHO])
    parser.add_argument("--scene", choices=[scene.name for scene in SCENES], action="append")
    parser.add_argument("--one-of", type=int, default=1)
    wanted = parser.parse_args(arguments)
    began, found = time.monotonic(), list[Tried]()
    place = IN_MEMORY if IN_MEMORY.is_dir() else None
    for scene in SCENES:
        if wanted.scene and scene.name not in wanted.scene:
            continue
        with tempfile.TemporaryDirectory(prefix=f"disturbed-{scene.name}-", dir=place) as root:
            own = try_scene(scene, WHO[wanted.who], wanted.one_of, Path(root))
        problems = sum(bool(trial.problems) for trial in own)
        print_line(f"{scene.name}: {len(own):,} tried, {problems:,} with a problem")
        found += own
    for line in told(found):
        print_line(line)
    print_line(f"in {time.monotonic() - began:.0f} s")
    return int(any(trial.problems for trial in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
