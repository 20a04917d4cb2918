"""A history as data: its settings, and what happens to it, step by step.

Steps are objects as in JSON, so that a history that went wrong can be shortened, kept in a file and
read by a person. What a step says in relation to the log ("the middle of what may be truncated") is
made a number when it happens: a script from which a step was taken out is still a script.

    broker    a broker starts, does what `turns` say, one list of operations after the other, and
              stops ("clean") or is killed ("kill")
    tamper    checkpoint entries are lost, or are those of an earlier time
    run       ours, and so are the next ones; `kill`: cut short, `cut` says where in this log;
              `engine`: "local" or "spark", in processes, some of which are killed at a `moment`
    recover, undo, discard, plan, verify

Fields in COMMON are the same for all histories that share a directory; the others are a log's own.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Step = Mapping[str, Any]
Operation = Mapping[str, Any]
COMMON = {
    "broker": ("do", "advance", "stop", "clocks"),
    "tamper": ("do",),
    "run": (
        *("do", "advance", "skew", "dry", "keep", "recover", "settings", "kill", "root_cut"),
        *("engine", "moment"),
    ),
    "recover": ("do", "kill", "root_cut"),
    "undo": ("do", "back", "kill", "root_cut"),
    "discard": ("do", "back"),
    "plan": ("do", "advance"),
    "verify": ("do",),
}


@dataclass(frozen=True, slots=True)
class Script:
    """One history."""

    name: str
    config: Mapping[str, str]  # of its topic, at first
    topic_ids: bool  # whether the broker is one that gives topics ids
    steps: tuple[Step, ...]

    def common(self) -> tuple[Step, ...]:
        return tuple(common_of(step) for step in self.steps)


def common_of(step: Step) -> Step:
    return {name: step[name] for name in COMMON[step["do"]] if name in step}


def to_text(script: Script) -> str:
    """A line for each step."""
    head = {"config": dict(script.config), "topic_ids": script.topic_ids}
    return "".join(f"{json.dumps(line)}\n" for line in (head, *script.steps))


def from_text(name: str, text: str) -> Script:
    """What to_text made; lines that are no objects are for people."""
    head, *steps = (json.loads(line) for line in text.splitlines() if line[:1] == "{")
    return Script(name, head["config"], head["topic_ids"], tuple(steps))


def read(path: Path) -> Script:
    return from_text(path.stem, path.read_text())


def without(script: Script, steps: Sequence[Step]) -> Script:
    """The same history with other steps."""
    return Script(script.name, script.config, script.topic_ids, tuple(steps))
