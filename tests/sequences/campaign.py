"""Batches of sequences: play, compare, plant losses, compare again."""

import random
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compactor.host.output import print_line
from storage.log.log_dir import list_partition, log_end_offset
from tests.histories import our_commands
from tests.histories.broker_process import Broker
from tests.histories.own_steps import OwnSteps
from tests.histories.script import Script
from tests.sequences import losses
from tests.sequences.steps import Steps
from tests.sequences.world import SequenceWorld, problems_by_partition

NEVER_HERE = ("move", "recreate", "lag", "truncate", "leader", "config")
BATCH = 25


@dataclass
class Score:
    sequences: int = 0
    strict: int = 0  # without a truncation, and with a report of every run
    planted: int = 0
    false_alarms: list[str] = field(default_factory=list)
    of_truncations: list[str] = field(default_factory=list)  # alarms that the measure allows
    of_unreported: list[str] = field(default_factory=list)  # likewise: a report was never written
    missed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    soundness: Counter[str] = field(default_factory=Counter)
    without_evidence: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Score") -> None:
        for name, value in vars(other).items():
            if isinstance(value, Counter):
                getattr(self, name).update(value)
            else:
                setattr(self, name, getattr(self, name) + value)


def play(number: int, root: Path, broker: Broker, size: int = BATCH) -> Score:
    """One batch: as many sequences as there are logs in its directory."""
    chance = random.Random(f"sequences {number}")
    truncates = number % 5 == 4
    score, began = Score(sequences=size), time.monotonic()
    scripts = _scripts(number, size, chance)
    world = SequenceWorld(scripts, root / str(number), broker)
    world.histories.now_ms = 1_700_000_000_000 + chance.randrange(10**9)
    try:
        with our_commands.local_rounds(root / str(number) / "round"):
            own = [script.steps[0] for script in scripts]
            world.write(scripts[0].steps[0], own)
            steps = Steps(world, chance, truncates)
            steps.play(chance.randint(2, 8))
            name = f"{number} ({' '.join(steps.done)})"
            if not (steps.has_unreported_run or "truncate" in steps.done):
                score.strict = size
            _judge(score, world, name, _alarms(score, steps))
            _plant(score, world, number, chance)
    finally:
        score.counts += world.counts
        shutil.rmtree(root / str(number), ignore_errors=True)
    alarms, missed = len(score.false_alarms), len(score.missed)
    print_line(
        f"batch {number}: {size} sequences of {' '.join(steps.done)}: {alarms} false alarms, "
        f"{missed} of {score.planted} losses missed, {time.monotonic() - began:.1f} s"
    )
    return score


def _scripts(number: int, size: int, chance: random.Random) -> list[Script]:
    common: dict[str, Any] = {
        "do": "broker",
        "advance": 0,
        "clocks": [chance.choice([0, 1_000, 61_000, 700_000]) for _ in range(chance.randint(1, 3))],
        "stop": chance.choice(["clean", "clean", "clean", "kill"]),
    }
    scripts = []
    for index in range(size):
        own = OwnSteps(random.Random(f"sequences {number}, {index}"), topic_ids=True)
        own._weights |= dict.fromkeys(NEVER_HERE, 0)
        config = own.config | {
            "delete.retention.ms": chance.choice(["0", "1000", "60000", "86400000"]),
            "segment.bytes": str(max(400, int(own.config["segment.bytes"]))),
        }
        step = common | own.part_of(common)
        for turn in step["turns"]:
            for operation in turn:
                if operation["op"] == "create":
                    operation["dir"] = 0
        scripts.append(Script(f"{number}-{index}", config, True, (step,)))
    return scripts


def _alarms(score: Score, steps: Steps) -> list[str]:
    """Where a false alarm counts: a run that was killed before it wrote a report gave none."""
    if "truncate" in steps.done:
        return score.of_truncations
    return score.of_unreported if steps.has_unreported_run else score.false_alarms


def _judge(score: Score, world: SequenceWorld, name: str, alarms: list[str]) -> None:
    score.problems += [f"{name}: {problem}" for problem in world.problems]
    compared = world.compare(reports=True, settings=True)
    found = problems_by_partition(compared, world.partitions)
    alarms += [f"{name}: {partition}: {'; '.join(p[:3])}" for partition, p in found.items()]
    score.soundness.update(each.soundness.value for each in compared.partitions)
    for reports, settings, what in (
        (False, False, "nothing given"),
        (False, True, "settings alone"),
        (True, False, "reports alone"),
    ):
        less = world.compare(reports=reports, settings=settings)
        score.without_evidence[what] += len(problems_by_partition(less, world.partitions))


def _plant(score: Score, world: SequenceWorld, number: int, chance: random.Random) -> None:
    """A loss in each log that has something to lose, each of a kind of its own."""
    planted: dict[str, str] = {}
    for name in world.partitions:
        path = world.now_dir / name
        end_before = log_end_offset(list_partition(str(world.before / name), "t", 0))
        end_before = min(end_before, world.truncated_to.get(name, end_before))
        log = losses.sought(path, name.removesuffix("-0"), end_before)
        kind = chance.choice(list(losses.KINDS))
        if not log.latest:
            continue
        what = losses.KINDS[kind](log, chance)
        if what is not None:
            planted[name] = f"{kind}: {what}"
            score.kinds[kind] += 1
    score.planted += len(planted)
    for given in (True, False):
        found = problems_by_partition(world.compare(given, given), world.partitions)
        score.missed += [
            f"{number}: {name}, given {'everything' if given else 'nothing'}: {what}"
            for name, what in planted.items()
            if name not in found
        ]


def told(score: Score) -> Sequence[str]:
    """The score in words."""
    return [
        *(f"FALSE ALARM {line}" for line in score.false_alarms),
        *(f"alarm after truncation {line}" for line in score.of_truncations),
        *(f"alarm after a run without a report {line}" for line in score.of_unreported),
        *(f"CALLED SOUND {line}" for line in score.missed),
        *(f"PROBLEM {line}" for line in score.problems),
        *(f"{count:8,} {what}" for what, count in sorted(score.counts.items())),
        *(f"{count:8,} logs {what}" for what, count in sorted(score.soundness.items())),
        *(
            f"{count:8,} logs with findings, {what}"
            for what, count in sorted(score.without_evidence.items())
        ),
        *(f"{count:8,} losses planted: {what}" for what, count in sorted(score.kinds.items())),
        f"{score.strict:,} sequences without a truncation, every run with a report",
        f"{score.sequences:,} sequences: {len(score.false_alarms)} false alarms, "
        f"{len(score.of_truncations)} after a truncation, {len(score.of_unreported)} after a run "
        f"without a report; {len(score.missed)} of "
        f"{score.planted:,} planted losses called sound",
    ]
