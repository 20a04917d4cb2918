"""One run killed at a random moment, and everything that has to hold afterwards.

1. All its processes are gone, or end by themselves.
2. What it left is settled: by `compactor recover`, by Kafka's own loader, or by the next run.
3. The reader's proof holds against the copy from before, and so does `verify`.
4. The next run ends as one that was never disturbed, and leaves nothing else behind.
"""

import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from compactor import api
from compactor.log_dirs.locked_log_dirs import lock_log_dirs
from compactor.outcome.round_report import LogStatus
from compactor.recovery.log_dir_recovery import recover_log_dir
from storage.file_names import SNAPSHOT, UNFINISHED_SUFFIXES
from tests.cluster.standalone import Cluster
from tests.kill import logs, victim
from tests.kill.moments import PHASE_NAMES, Place, random_moment, run_until
from tests.kill.processes import Target
from tests.oracle import kafka

ON_CLUSTER = 0.25  # of the runs on Spark, where there is one


class Settling(StrEnum):
    """Who settles what a killed run left."""

    RECOVER = "recover"
    KAFKA = "Kafka's loader"
    NEXT_RUN = "the next run"


@dataclass(slots=True)
class Kill:
    """A kill, and what did not hold after it."""

    seed: int
    target: Target
    phase: str
    place: Place
    swapped_logs: int = 0  # in which something had been swapped in by then
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Range:
    """Where runs are killed: the logs as they were, and as an undisturbed run leaves them."""

    root: Path
    spark: Any
    with_kafka: bool
    cluster: Cluster | None = None  # on which some of the runs are made

    @property
    def before(self) -> Path:
        return self.root / "before"

    @property
    def undisturbed(self) -> Path:
        return self.root / "undisturbed"

    @property
    def configs(self) -> Path:
        return self.root / "topics.json"

    def prepare(self) -> None:
        """Write the logs, and clean a copy of them."""
        logs.write(self.before, self.configs)
        shutil.copytree(self.before, self.undisturbed)
        self.run(self.undisturbed, self.root)
        same = [
            p.name for p in _partitions(self.before) if _same_logs(p, self.undisturbed / p.name)
        ]
        assert not same, f"nothing to clean in {same}"

    def run(self, log_dir: Path, work_dir: Path) -> None:
        """A whole run, as `compactor run` makes it, in the session that is there already."""
        rules = api.Rules(topic_configs=str(self.configs), as_of=logs.NOW_MS, any_clock=True)
        options = api.RunOptions(work_dir=str(work_dir), session=self.spark)
        report = api.run([str(log_dir)], rules, options)
        wrong = [
            log for log in report.logs if log.status in (LogStatus.FAILED, LogStatus.SET_ASIDE)
        ]
        assert not wrong, wrong

    def kill_one(self, seed: int) -> Kill:
        """Kill one run; another one if it was over before."""
        for attempt in range(20):
            chance = random.Random(f"{seed} {attempt}")
            place = self._place_of(seed)
            with tempfile.TemporaryDirectory(prefix=f"kill-{seed}-", dir=self.root) as folder:
                killed = self._kill(Path(folder), chance, seed, place)
                if killed is not None:
                    return killed
        raise AssertionError(f"seed {seed}: twenty runs ended before they could be killed")

    def _place_of(self, seed: int) -> Place:
        """Every other seed is of the local engine."""
        if seed % 2:
            return Place.LOCAL
        on_cluster = self.cluster and random.Random(f"place {seed}").random() < ON_CLUSTER
        return Place.CLUSTER if on_cluster else Place.SPARK

    def _kill(self, folder: Path, chance: random.Random, seed: int, place: Place) -> Kill | None:
        log_dir, work_dir, status = folder / "logs", folder / "work", folder / "status"
        shutil.copytree(self.before, log_dir, copy_function=os.link)  # as an operator would
        work_dir.mkdir()
        moment = random_moment(chance, place)
        words = [str(status), "run", str(log_dir), "--topic-configs", str(self.configs)]
        words += ["--as-of", str(logs.NOW_MS), "--any-clock", "--work-dir", str(work_dir)]
        argv = [sys.executable, "-m", "tests.kill.victim", *words, *place.options]
        executors: Sequence[int] = ()
        if place is Place.CLUSTER and self.cluster is not None:
            argv = self.cluster.submit(Path(victim.__file__), *words, conf={})
            executors = self.cluster.sessions
        said = folder / "out", folder / "errors"
        run = run_until(moment, argv, status, said, place, executors)
        if not run.was_hit:
            return None
        killed = Kill(seed, moment.target, PHASE_NAMES[run.fell_in], place)
        if not run.ended:
            killed.problems.append("processes of the killed run did not end in time")
        if place is Place.LOCAL and moment.target in (Target.HOST, Target.WORKER) and run.code:
            said_last = (folder / "errors").read_text()[-500:]
            killed.problems.append(f"no task was tried again: {run.code}, {said_last}")
        self._check(killed, chance, log_dir, work_dir)
        return killed

    def _check(self, killed: Kill, chance: random.Random, log_dir: Path, work_dir: Path) -> None:
        settling = chance.choice([*Settling])
        if settling is Settling.KAFKA and self.with_kafka:
            _settle_by_kafka(log_dir, chance)
        if settling is not Settling.NEXT_RUN:
            with lock_log_dirs([str(log_dir)]):
                recover_log_dir(str(log_dir))
            killed.problems += self._lies(log_dir)
        untouched = [p.name for p in _partitions(log_dir) if _same_logs(p, self.before / p.name)]
        killed.swapped_logs = len(_partitions(log_dir)) - len(untouched)
        self.run(log_dir, work_dir)
        killed.problems += self._lies(log_dir)
        killed.problems += [f"left in the work directory: {n}" for n in os.listdir(work_dir)]
        for partition in _partitions(log_dir):
            if logs.is_stable(partition.name) or partition.name in untouched:
                killed.problems += _differences(partition, self.undisturbed / partition.name)
        if _checkpoints(log_dir) != _checkpoints(self.undisturbed):
            killed.problems.append("cleaner-offset-checkpoint is another")

    def _lies(self, log_dir: Path) -> Iterator[str]:
        clock = api.CleaningClock(logs.NOW_MS, is_exact=True)
        compared = api.verify_against(str(log_dir), str(self.before), clock=clock)
        yield from map(str, compared.findings)
        yield from map(str, api.verify(str(log_dir)).findings)
        for path in log_dir.rglob("*"):
            if ".compactor-" in path.name or path.name.endswith((*UNFINISHED_SUFFIXES, ".tmp")):
                yield f"{path}: left over"


def _settle_by_kafka(log_dir: Path, chance: random.Random) -> None:
    """Of one partition, one with a swap half done if there is any; ours settles the others."""
    partitions = [p for p in _partitions(log_dir) if logs.is_stable(p.name)]
    halves = [p for p in partitions if any(n.endswith(UNFINISHED_SUFFIXES) for n in os.listdir(p))]
    kafka.run("recover", log_dir, chance.choice(halves or partitions).name, "--clean", "true")


def _partitions(log_dir: Path) -> list[Path]:
    return sorted(path for path in log_dir.iterdir() if path.is_dir())


def _contents(partition: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in partition.iterdir() if path.suffix != SNAPSHOT}


def _same_logs(partition: Path, other: Path) -> bool:
    here, there = (
        {n: d for n, d in _contents(p).items() if ".log" in n} for p in (partition, other)
    )
    return here == there


def _differences(partition: Path, other: Path) -> list[str]:
    here, there = _contents(partition), _contents(other)
    return [
        f"{partition / name}: not as an undisturbed run leaves it"
        for name in sorted(here.keys() | there.keys())
        if here.get(name) != there.get(name)
    ]


def _checkpoints(log_dir: Path) -> list[str]:
    return sorted((log_dir / "cleaner-offset-checkpoint").read_text().splitlines())
