"""A log manager in one process and a command in another, on the same log directories. One goes on
at a time, up to its next operation on a file; a seed says which."""

import itertools
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

from storage.files.local import LOCAL
from storage.formats.meta_properties import MetaProperties
from storage.formats.meta_properties import write as write_meta_properties
from tests.engine.pairs.models import read_models, write_models
from tests.engine.pairs.story import OPERATIONS, Place, Story
from tests.engine.pairs.threads import Played

COMMANDS = (
    *("log roll", "log truncate", "log delete-records", "log append", "log abort", "log move"),
    *("recover", "recover --as-kafka"),
)
PAIRS = list(itertools.product(OPERATIONS, COMMANDS))


class Worker:
    """A process that waits at each operation on a file."""

    def __init__(self) -> None:
        words = [sys.executable, "-m", "tests.engine.pairs.worker"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, bufsize=1)

    def tell(self, told: object) -> Any:
        """Let it go on; what it says next."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(30)


class Processes:
    """Two of them."""

    def __init__(self) -> None:
        self._workers = (Worker(), Worker())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()

    def play(self, seed: int) -> Played:
        pair = PAIRS[seed % len(PAIRS)]
        chance = random.Random(seed)
        with tempfile.TemporaryDirectory(prefix="pairs-") as root:
            place = Place(LOCAL, (f"{root}/a", f"{root}/b"), f"{root}/work-")
            _make(root, Story(chance, place))
            answers = self._interleaved(chance, pair, root)
            problems = [problem for answer in answers for problem in answer["problems"]]
            if not problems:
                later = Story(chance, place)
                later.logs = read_models(root)
                problems = later.wrong_later()
        return Played(pair, problems, sum(answer["is_done"] for answer in answers))

    def _interleaved(self, chance: random.Random, pair: tuple[str, str], root: str) -> list[Any]:
        """What each said at its end."""
        operation, command = pair
        seeds = chance.randrange(2**32), chance.randrange(2**32)
        told: list[object] = [
            {"operation": operation, "command": None, "seed": seeds[0], "root": root},
            {"operation": None, "command": command, "seed": seeds[1], "root": root},
        ]
        alive, often, answers = [0, 1], chance.choice((0.01, 0.05, 0.3)), []
        number = chance.choice(alive)
        while alive:
            answer = self._workers[number].tell(told[number])
            told[number] = "go"
            if answer != "step":
                answers.append(answer)
                alive.remove(number)
            if alive and (number not in alive or chance.random() < often):
                number = chance.choice(alive)
        return answers


def _make(root: str, story: Story) -> None:
    story.begin()
    story.manager.close()
    for name in "ab":
        write_meta_properties(f"{root}/{name}", MetaProperties(1, "cluster", 1, name))
    assert Path(root).is_dir()
    write_models(root, story.logs)
