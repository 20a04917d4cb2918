"""Runs batches of histories one after another, and makes short what goes wrong."""

import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from compactor.host.output import print_line
from tests.campaign import Tried
from tests.histories import generator, script
from tests.histories.batch import Batch
from tests.histories.broker_process import BrokerProcess
from tests.histories.script import Script
from tests.histories.shrink import shrunk

_WHERE = re.compile(r"^step \d+ \(\w+\): ")


class Wanted(NamedTuple):
    """How batches are played."""

    size: int  # histories in each
    shortens: bool  # what goes wrong
    in_processes: bool  # the runs of the batches whose turn it is
    found: Path | None  # where scripts of what went wrong are written


class Batches:
    def __init__(self, root: Path, broker: BrokerProcess, wanted: Wanted) -> None:
        """root: a directory in which there is nothing yet."""
        self._root, self._broker, self._wanted = root, broker, wanted
        self._made = 0

    def tried(self, number: int) -> Tried:
        """Run one batch."""
        wanted, began, cpu = self._wanted, time.monotonic(), self._cpu()
        batch = self.run(generator.batch_of(number, wanted.size, wanted.in_processes))
        steps = len(batch.scripts[0].steps)
        cpu = self._cpu() - cpu
        failed = batch.failed()
        line = (
            f"batch {number}: {wanted.size} histories of {steps} steps, {len(failed)} violations, "
            f"{cpu:.1f} s of processor, {time.monotonic() - began:.1f} s"
        )
        problems = list(batch.problems)
        for one, model in failed:
            short = self._shortened(one, model.problems[0]) if wanted.shortens else None
            problem = "; ".join(model.problems[:3])
            problems.append(f"{one.name}: {problem}")
            if short is not None:
                self._found(one.name, problem, script.to_text(short))
        counts = Counter({"steps of histories": wanted.size * steps}) + batch.world.counts
        return Tried(problems, counts, line, wanted.size)

    def run(self, scripts: Sequence[Script]) -> Batch:
        """These, in directories of their own that are gone when it is over."""
        self._made += 1
        root = self._root / str(self._made)
        try:
            batch = Batch(scripts, root, self._broker)
            batch.run()
            return batch
        finally:
            shutil.rmtree(root, ignore_errors=True)

    def problem_alone(self, one: Script) -> str | None:
        """What goes wrong with a history that has the directories to itself."""
        batch = self.run([one])
        problems = batch.world.models[0].problems or batch.problems
        return problems[0] if problems else None

    def _shortened(self, one: Script, problem: str) -> Script | None:
        kind = _kind_of(problem)

        def fails(shorter: Script) -> bool:
            found = self.problem_alone(shorter)
            return found is not None and _kind_of(found) == kind

        return shrunk(one, fails) if fails(one) else None

    def _found(self, name: str, problem: str, text: str) -> None:
        print_line(text)
        directory = self._wanted.found
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            (directory / f"{name}.jsonl").write_text(f"# {problem}\n{text}")

    def _cpu(self) -> float:
        return sum(os.times()[:4]) + self._broker.seconds()


def _kind_of(problem: str) -> str:
    """The problem without what is only so in this history."""
    told = re.sub(r"\d+|'[^']*'", "#", _WHERE.sub("", problem))
    return told.partition(":")[0][:60]
