"""Shortens a history that goes wrong, for as long as it still does."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.histories.script import Script, Step, without

Fails = Callable[[Script], bool]
_PLAIN: Mapping[str, Any] = {
    "kill": None,
    "settings": {},
    "skew": 0,
    "dry": False,
    "moment": None,
    "spark": False,
}


def shrunk(script: Script, fails: Fails, tries: int = 400) -> Script:
    """The shortest that was found; fails: whether a history goes wrong in the same way."""
    left = tries
    while True:
        for shorter in _shorter(script):
            if not left:
                return script
            left -= 1
            if fails(shorter):
                script = shorter
                break
        else:
            return script


def _shorter(script: Script) -> Iterator[Script]:
    """Every history that is a little shorter, those first that are much."""
    steps = script.steps
    for size in (len(steps) // 2, len(steps) // 4, 2, 1):
        for at in range(0, len(steps) if size else 0, max(size, 1)):
            if rest := steps[:at] + steps[at + size :]:
                yield without(script, rest)
    for number, step in enumerate(steps):
        for simpler in _simpler(step):
            yield without(script, [*steps[:number], simpler, *steps[number + 1 :]])


def _simpler(step: Step) -> Iterator[Step]:
    for name, plain in _PLAIN.items():
        if step.get(name, plain) != plain:
            yield {**step, name: plain}
    if step["do"] == "broker":
        if step["stop"] != "clean":
            yield {**step, "stop": "clean"}
        yield from _simpler_turns(step)
    for at, _ in enumerate(step.get("ops", ())):
        yield {**step, "ops": [*step["ops"][:at], *step["ops"][at + 1 :]]}


def _simpler_turns(step: Step) -> Iterator[Step]:
    turns: Sequence[Sequence[Any]] = step["turns"]
    for number in range(len(turns) if len(turns) > 1 else 0):
        clocks = step["clocks"]
        yield {
            **step,
            "turns": [*turns[:number], *turns[number + 1 :]],
            "clocks": [*clocks[:number], *clocks[number + 1 :]],
        }
    for number, turn in enumerate(turns):
        for size in (len(turn) // 2, 1):
            for at in range(0, len(turn) if size else 0, max(size, 1)):
                rest = [*turn[:at], *turn[at + size :]]
                yield {**step, "turns": [*turns[:number], rest, *turns[number + 1 :]]}
        for at, operation in enumerate(turn):
            keys = operation.get("keys", "")
            for cut in range(len(keys) if len(keys) > 1 else 0):
                shorter = {**operation, "keys": keys[:cut] + keys[cut + 1 :]}
                rest = [*turn[:at], shorter, *turn[at + 1 :]]
                yield {**step, "turns": [*turns[:number], rest, *turns[number + 1 :]]}
