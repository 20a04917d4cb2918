"""What an operator does on a directory that a broker left, step by step, and how each step ends."""

import json
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from tests.end_to_end.operator_shell import Ended, Shell
from tests.golden import broker_dirs
from tests.support.file_states import state_of

DAMAGED = "/data/kafka/orders-7/00000000000000000200.log"
OF_PAGES = "4000"  # the producer id that the pages have
Before = Callable[[Shell], None]


class Step(NamedTuple):
    """A command of a page: what has to be there, how it ends, and what the page says it says."""

    line: str
    code: int = 0
    says: tuple[str, ...] = ()
    before: tuple[Before, ...] = ()
    keeps: str = ""  # the directory in which nothing changes


class NotRun(NamedTuple):
    """A command of a page that is not run here, and why."""

    line: str
    why: str


def lay(name: str, place: str) -> Before:
    """Puts what a broker left at a place."""

    def put(shell: Shell) -> None:
        broker_dirs.write_broker_dir(name, shell.path(place))

    return put


def make(*places: str) -> Before:
    """Makes empty directories."""

    def put(shell: Shell) -> None:
        for place in places:
            shell.path(place).mkdir(parents=True, exist_ok=True)

    return put


def damage(shell: Shell) -> None:
    """Turns a bit in a closed segment, whose time of change stays."""
    path = shell.path(DAMAGED)
    data, times = bytearray(path.read_bytes()), path.stat()
    data[300] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def move(source: str, target: str) -> Before:
    def put(shell: Shell) -> None:
        shell.path(target).parent.mkdir(parents=True, exist_ok=True)
        shell.path(source).rename(shell.path(target))

    return put


def remove(pattern: str) -> Before:
    """Removes the files that a pattern names."""

    def put(shell: Shell) -> None:
        found = [*shell.path(str(Path(pattern).parent)).glob(Path(pattern).name)]
        assert found, pattern
        for path in found:
            path.unlink()

    return put


def write_topics(place: str, *topics: str, policy: str = "compact", **others: str) -> Before:
    """Writes a file that gives topics settings: the broker's, unless others are given."""

    def put(shell: Shell) -> None:
        path = shell.path(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        settings = {"cleanup.policy": policy, **others}
        path.write_text(json.dumps(dict.fromkeys(topics, settings)))

    return put


def carry_out(shell: Shell, steps: Iterable[Step | NotRun]) -> None:
    """Take the steps, and hold how each ends; a producer id that a step shows is the next one's."""
    producer = OF_PAGES
    for step in steps:
        if isinstance(step, NotRun):
            continue
        for prepare in step.before:
            prepare(shell)
        line = step.line.replace(f"--producer-id {OF_PAGES}", f"--producer-id {producer}")
        before = state_of(shell.path(step.keeps)) if step.keeps else {}
        ended = shell.run(line)
        assert ended.code == step.code, f"{line}\n{ended.said}"
        missing = [text for text in step.says if text not in ended.words]
        assert missing == [], f"{missing}\n{line}\n{ended.said}"
        assert before == (state_of(shell.path(step.keeps)) if step.keeps else {}), line
        producer = _producer_in(ended) or producer


def _producer_in(ended: Ended) -> str | None:
    """The producer id that a command has shown."""
    shown = re.search(r"^ producer (\d+) ", ended.said, re.MULTILINE)
    return shown[1] if shown else None
