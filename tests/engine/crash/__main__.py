"""python -m tests.engine.crash: crash states of the engine, opened by Kafka's engine and by ours.

Every state of every story and of every move: what was flushed is there, what is there is sound, and
Kafka's engine gives the same answers and leaves the same files. Some states both refuse to open, as
Kafka's engine does where a segment ends in zeros and the next one has no index yet; they are
counted. --states: so many of each, spread over it. Needs a JDK.
"""

import json
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from tests.campaign import Campaign, Case, Tried
from tests.crash.matrix import sample
from tests.crash.states import CrashState, crash_states
from tests.engine.crash import moves, opening
from tests.engine.crash.record import Recorded, recorded
from tests.engine.crash.stories import STORIES, Story
from tests.engine.rules.case import Line
from tests.engine.rules.kept import ask_kafka
from tests.engine.transcripts import AS_BYTES, first_difference

EVERY = 1 << 62
AT_ONCE = 1_000
MOVES = {move.__name__.replace("_", " "): move for move in moves.MOVES}


class Opened(NamedTuple):
    """What our engine makes of a crash state."""

    state: CrashState
    transcript: Sequence[Any]
    problems: Sequence[str]
    is_refused: bool


class Crashed(NamedTuple):
    """What was cut short, and how what is left of it is opened."""

    states: Sequence[CrashState]
    script_of: Callable[[CrashState], list[Line]]
    open_all: Callable[[Sequence[CrashState], Path], Iterable[Opened]]
    operations: Sequence[object]


def cases(wanted: Namespace, root: Path) -> Iterator[Case]:
    made = {story.name: partial(_of_story, story) for story in STORIES}
    made |= {name: partial(_of_move, move) for name, move in MOVES.items()}
    for name in wanted.only:
        own = root / name
        own.mkdir()
        crashed = made[name](own)
        states = sample(list(crashed.states), wanted.states)
        for start in range(0, len(states), AT_ONCE):
            some = states[start : start + AT_ONCE]
            attempt = partial(_tried, crashed, some, own, wanted.ours_alone)
            yield Case(f"states from {start}", attempt, name)


def _of_story(story: Story, scratch: Path) -> Crashed:
    run = recorded(story, scratch)
    states = list(crash_states(run.record))
    return Crashed(states, opening.script_of, partial(_opened, run), run.record.operations)


def _opened(run: Recorded, states: Sequence[CrashState], scratch: Path) -> Iterator[Opened]:
    for state in states:
        outcome = opening.opened(run, state, scratch / "opened")
        shutil.rmtree(scratch / "opened")
        yield Opened(state, outcome.transcript, outcome.problems, outcome.is_refused)


def _of_move(move: Callable[[], moves.Moved], _: Path) -> Crashed:
    moved = move()
    states = list(crash_states(moved.record))
    return Crashed(states, moves.script_of, partial(_started, moved), moved.record.operations)


def _started(moved: moves.Moved, states: Sequence[CrashState], scratch: Path) -> Iterator[Opened]:
    for state, told, problems in moves.tried(moved, states, scratch):
        yield Opened(state, told, problems, "error" in told[-len(moves.LOOK)])


def _tried(crashed: Crashed, states: Sequence[CrashState], scratch: Path, alone: bool) -> Tried:
    answers = [] if alone else ask_kafka(map(crashed.script_of, states))
    problems, refused = [], 0
    for found, answer in zip_longest(crashed.open_all(states, scratch), answers):
        actual = json.loads(json.dumps(found.transcript))
        difference = answer and first_difference(answer.transcript, actual, AS_BYTES)
        wrong = [*found.problems, *([f"Kafka: {difference}"] if difference else [])]
        refused += found.is_refused
        done = found.state.operations
        last = crashed.operations[done - 1] if done else "nothing"
        where = f"after operation {done} ({last}), {found.state.kind}"
        problems += [f"{where}: {'; '.join(wrong[:3])}"] if wrong else []
    return Tried(problems, {"refused to open, as by Kafka": refused}, cases=len(states))


CAMPAIGN = Campaign(
    "tests.engine.crash",
    __doc__,
    cases,
    groups=[*(story.name for story in STORIES), *MOVES],
    options={
        "--states": {"type": int, "default": EVERY},
        "--ours-alone": {"action": "store_true", "help": "without Kafka's engine"},
    },
)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
