"""Two operations of a log manager in two threads, one schedule for each seed."""

import itertools
import random
from typing import NamedTuple

from tests.engine.pairs.story import (
    BESIDE_AN_END,
    ENDS,
    OPERATIONS,
    Place,
    StepFiles,
    Story,
    is_checkpoint,
)
from tests.engine.pairs.turns import Turns, locks_of
from tests.support.files.watched import Operation, WatchedFiles

PAIRS = [
    pair
    for pair in itertools.combinations_with_replacement(OPERATIONS, 2)
    if not set(pair) <= set(ENDS)
]
TIMES = 3  # that each thread does its operation


class Played(NamedTuple):
    pair: tuple[str, str]
    problems: list[str]
    done: int = 2  # of the two


def play(seed: int) -> Played:
    """The pairs come in turn, each with seeds of its own."""
    pair = PAIRS[seed % len(PAIRS)]
    chance = random.Random(seed)
    turns = Turns(chance)
    with locks_of(turns):

        def between(operation: Operation) -> None:
            turns.may_change(any(map(is_checkpoint, operation.paths)))

        files = WatchedFiles(StepFiles(turns.may_change), between)
        story = Story(chance, Place(files, ("/a", "/b"), "/work-"))
        story.begin()

        def repeat(number: int) -> None:
            operation, _ = OPERATIONS[pair[number]]
            for _ in range(1 if pair[number] in ENDS else TIMES):
                operation(story, story.logs[number])

        errors = turns.run([lambda: repeat(0), lambda: repeat(1)])
        if story.is_closed:
            errors = [error for error in errors if not isinstance(error, BESIDE_AN_END)]
        problems = [repr(error) for error in errors]
        return Played(pair, problems or story.wrong())
