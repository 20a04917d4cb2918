"""Batches of sequences: play, compare, plant losses, compare again."""

import random
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storage.log.log_dir import list_partition, log_end_offset
from tests.campaign import Tried
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
    """What came of a batch."""

    problems: list[str] = field(default_factory=list)  # false alarms and missed losses among them
    counts: Counter[str] = field(default_factory=Counter)


def play(number: int, root: Path, broker: Broker, size: int = BATCH) -> Tried:
    """One batch: as many sequences as there are logs in its directory."""
    chance = random.Random(f"sequences {number}")
    score, began = Score(), time.monotonic()
    scripts = _scripts(number, size, chance)
    world = SequenceWorld(scripts, root / str(number), broker)
    world.histories.now_ms = 1_700_000_000_000 + chance.randrange(10**9)
    try:
        with our_commands.local_rounds(root / str(number) / "round"):
            own = [script.steps[0] for script in scripts]
            world.write(scripts[0].steps[0], own)
            steps = Steps(world, chance, truncates=number % 5 == 4)
            steps.play(chance.randint(2, 8))
            if not (steps.has_unreported_run or "truncate" in steps.done):
                score.counts["sequences without a truncation, every run with a report"] = size
            _judge(score, world, steps)
            _plant(score, world, chance)
    finally:
        score.counts += world.counts
        shutil.rmtree(root / str(number), ignore_errors=True)
    line = f"batch {number}: {size} sequences of {' '.join(steps.done)}: "
    line += f"{len(score.problems)} wrong, {time.monotonic() - began:.1f} s"
    return Tried(score.problems, score.counts, line, size)


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


def _judge(score: Score, world: SequenceWorld, steps: Steps) -> None:
    score.problems += world.problems
    compared = world.compare(reports=True, settings=True)
    found = problems_by_partition(compared, world.partitions)
    if "truncate" in steps.done:
        score.counts["alarms after a truncation"] += len(found)
    elif steps.has_unreported_run:  # one that was killed before it wrote a report
        score.counts["alarms after a run without a report"] += len(found)
    else:
        score.problems += [
            f"FALSE ALARM after {' '.join(steps.done)}: {partition}: {'; '.join(p[:3])}"
            for partition, p in found.items()
        ]
    score.counts.update(f"logs {each.soundness.value}" for each in compared.partitions)
    for reports, settings, what in (
        (False, False, "nothing given"),
        (False, True, "settings alone"),
        (True, False, "reports alone"),
    ):
        less = world.compare(reports=reports, settings=settings)
        found = problems_by_partition(less, world.partitions)
        score.counts[f"logs with findings, {what}"] += len(found)


def _plant(score: Score, world: SequenceWorld, chance: random.Random) -> None:
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
            score.counts[f"losses planted: {kind}"] += 1
    for given in (True, False):
        found = problems_by_partition(world.compare(given, given), world.partitions)
        score.problems += [
            f"CALLED SOUND {name}, given {'everything' if given else 'nothing'}: {what}"
            for name, what in planted.items()
            if name not in found
        ]
