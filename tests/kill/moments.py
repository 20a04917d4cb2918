"""A run in processes of its own, and the moment at which some of them are killed."""

import random
import subprocess
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from tests.cluster.standalone import environment
from tests.kill import processes, victim
from tests.kill.processes import LINGER_SECONDS, LOCAL_LINGER_SECONDS, Target

PROJECT = Path(__file__).parents[2]


class Place(StrEnum):
    """What runs the tasks of a run that is killed."""

    LOCAL = "on the local engine"
    SPARK = "on Spark in local mode"
    CLUSTER = "on a cluster"

    @property
    def options(self) -> tuple[str, ...]:
        """Of `compactor run`; those of a cluster are spark-submit's."""
        return {
            Place.LOCAL: ("--engine", "local"),
            Place.SPARK: ("--master", "local[2]"),
            Place.CLUSTER: (),
        }[self]

    @property
    def targets(self) -> tuple[Target, ...]:
        return {
            Place.LOCAL: (Target.DRIVER, Target.HOST, Target.WORKER, Target.ALL),
            Place.SPARK: (Target.DRIVER, Target.JVM, Target.WORKER, Target.ALL),
            Place.CLUSTER: tuple(target for target in Target if target is not Target.HOST),
        }[self]

    @property
    def linger_seconds(self) -> float:
        """How long processes may outlive their driver."""
        return LOCAL_LINGER_SECONDS if self is Place.LOCAL else LINGER_SECONDS


START_SECONDS = {Place.LOCAL: 1.0, Place.SPARK: 4.0, Place.CLUSTER: 4.0}
LONGEST_PHASE_SECONDS = {
    victim.SCAN: 1.5,
    victim.RESOLVE: 0.3,
    victim.REWRITE: 0.5,
    victim.SWAP: 0.6,
    victim.REWRITTEN: 0.3,
    victim.CHECKPOINT: 0.05,
}
MOMENTS = victim.START + victim.SCAN + victim.RESOLVE + victim.REWRITE * 2 + victim.SWAP * 6
MOMENTS += victim.REWRITTEN + victim.CHECKPOINT
PHASE_NAMES = dict(
    zip(
        victim.PHASES,
        ("start", "scan", "resolve", "rewrite", "swap", "last swaps", "checkpoint"),
        strict=True,
    )
)
RUN_SECONDS = 900.0


class Moment(NamedTuple):
    phase: str  # one of victim.PHASES
    delay_seconds: float  # from its beginning on
    target: Target


class Outcome(NamedTuple):
    """What became of the run."""

    was_hit: bool  # not, where it was over before
    fell_in: str  # one of victim.PHASES
    ended: bool  # all its processes, by themselves
    code: int


def random_moment(chance: random.Random, place: Place) -> Moment:
    target, phase = chance.choice(place.targets), chance.choice(MOMENTS)
    longest = LONGEST_PHASE_SECONDS | {victim.START: START_SECONDS[place]}
    return Moment(phase, chance.uniform(0, longest[phase]), target)


def run_until(
    moment: Moment | None,
    argv: Sequence[str],
    status: Path,
    said: tuple[Path, Path],
    place: Place,
    executors: Sequence[int] = (),
) -> Outcome:
    """Start a run and kill it; None: let it end.

    argv: of a `tests.kill.victim` with that status. said: where its standard output and error go.
    executors: of the cluster's workers; none without a cluster.
    """
    with said[0].open("wb") as out, said[1].open("ab") as errors:
        running = subprocess.Popen(
            argv, cwd=PROJECT, stdout=out, stderr=errors, env=environment(), start_new_session=True
        )
    was_hit = False
    try:
        if moment is not None:
            _wait_for(moment.phase, status, running)
            time.sleep(moment.delay_seconds)
            is_running = running.poll() is None
            was_hit = is_running and processes.kill(running.pid, executors, moment.target)
        fell_in = [victim.START, *_read(status)][-1]
        code = running.wait(RUN_SECONDS)
    except BaseException:
        processes.kill(running.pid, executors, Target.ALL)
        raise
    finally:
        ended = processes.wait_until_gone(running.pid, executors, place.linger_seconds)
    return Outcome(was_hit, fell_in, ended, code)


def _wait_for(phase: str, status: Path, running: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + RUN_SECONDS
    while running.poll() is None and phase not in _read(status):
        assert time.monotonic() < deadline, f"the run does not come to {PHASE_NAMES[phase]}"
        time.sleep(0.002)


def _read(status: Path) -> list[str]:
    return [phase for phase, _ in victim.phases_of(status)]
