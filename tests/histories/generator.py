"""Random histories: the same seed, the same history.

A batch's seed makes what its histories have in common; a history's own number makes the rest.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from tests.histories.own_steps import OwnSteps
from tests.histories.process_runs import PLACES
from tests.histories.script import Script, Step
from tests.kill import moments

BATCH = 50
IN_PROCESSES = 50  # one batch in so many has its runs in processes of their own
KILLED_IN_PROCESSES = 0.7

Common = dict[str, Any]  # what the histories of a batch share of a step


def batch_of(number: int, size: int = BATCH, in_processes: bool = True) -> list[Script]:
    """The histories number * size and so on."""
    chance = random.Random(f"batch {number}")
    topic_ids = chance.random() < 0.7
    common = _common(chance)
    if in_processes and number % IN_PROCESSES == 1:
        common = [_in_processes(chance, step) for step in common]
    return [
        _script(f"{number}-{index}", common, topic_ids, random.Random(f"batch {number}, {index}"))
        for index in range(size)
    ]


def _common(chance: random.Random) -> list[Common]:
    steps: list[Common] = [_broker(chance)]
    for _ in range(chance.randint(3, 8)):
        steps += _between(chance, steps)
        steps.append(_broker(chance))
    return [*steps[:-1], steps[-1] | {"stop": "clean"}, {"do": "verify"}, {"do": "verify"}]


def _between(chance: random.Random, before: Sequence[Common]) -> Iterator[Common]:
    """What happens while no broker runs."""

    def happens(share: float) -> bool:
        return chance.random() < share

    is_tampered = happens(0.4)
    if is_tampered:
        yield {"do": "tamper"}
    if happens(0.1):
        yield _with_kill(chance, {"do": "recover"}, 0.3)
    if happens(0.05):
        yield {"do": "plan", "advance": _advance(chance)}
    if happens(0.7 if is_tampered else 0.3):
        yield _undo(chance)
    for share in (0.85, 0.15):
        if happens(share):
            run = _run(chance, before)
            yield run
            if "kill" in run and happens(0.3):
                yield _with_kill(chance, {"do": "recover"}, 0.3)
    if happens(0.1):
        yield {"do": "tamper"}
    if happens(0.12):
        yield _undo(chance)
    if happens(0.04):
        yield {"do": "discard", "back": chance.randint(0, 3)}
    if happens(0.2):
        yield {"do": "verify"}


def _undo(chance: random.Random) -> Common:
    return _with_kill(chance, {"do": "undo", "back": chance.choice([0, 0, 1, 1, 2])}, 0.15)


def _broker(chance: random.Random) -> Common:
    return {
        "do": "broker",
        "advance": _advance(chance),
        "clocks": [_advance(chance) for _ in range(chance.randint(1, 3))],
        "stop": chance.choice(["clean", "clean", "clean", "kill"]),
    }


def _run(chance: random.Random, before: Sequence[Step]) -> Common:
    last_stop = next((s["stop"] for s in reversed(before) if s["do"] == "broker"), "clean")
    settings = (
        {"delete.retention.ms": chance.choice(["0", "1000"])} if chance.random() < 0.2 else {}
    )
    step = {
        "do": "run",
        "advance": _advance(chance),
        "skew": chance.choice([0, 0, 0, 0, 0, -3_000, 3_000]),
        "dry": chance.random() < 0.08,
        "keep": chance.random() < 0.85,
        "recover": last_stop == "kill" if chance.random() < 0.9 else chance.random() < 0.5,
        "settings": settings,
    }
    return _with_kill(chance, step, 0.25)


def _in_processes(chance: random.Random, step: Common) -> Common:
    """A run that is killed there is killed by SIGKILL, or not at all where it is over before."""
    if step["do"] != "run":
        return step
    step = {name: value for name, value in step.items() if name not in ("kill", "root_cut")}
    engine = chance.choice([*PLACES])
    if not step["dry"] and chance.random() < KILLED_IN_PROCESSES:
        phase, delay_seconds, target = moments.random_moment(chance, PLACES[engine])
        step["moment"] = [phase, round(delay_seconds, 3), target.value]
    return step | {"engine": engine}


def _with_kill(chance: random.Random, step: Common, share: float) -> Common:
    if chance.random() >= share:
        return step
    kill = chance.choice(["logs", "logs", "logs", "retention", "all"])
    cut = {"root_cut": chance.randrange(25)} if kill == "all" else {}
    return step | {"kill": kill, **cut}


def _advance(chance: random.Random) -> int:
    return chance.choice([0, 10, 1_000, 1_000, 5_000, 61_000, 700_000])


def _script(name: str, common: Sequence[Step], topic_ids: bool, chance: random.Random) -> Script:
    own = OwnSteps(chance, topic_ids)
    steps = [{**step, **own.part_of(step)} for step in common]
    return Script(name, own.config, topic_ids, tuple(steps))
