"""Runs batches of histories one after another, and makes short what goes wrong."""

import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.histories import generator, script
from tests.histories.batch import Batch
from tests.histories.broker_process import BrokerProcess
from tests.histories.script import Script
from tests.histories.shrink import shrunk

Tell = Callable[[str], None]
_WHERE = re.compile(r"^step \d+ \(\w+\): ")


@dataclass(frozen=True, slots=True)
class Violation:
    """A history that went wrong."""

    name: str
    problem: str
    script: Script | None  # as short as it became; None: it goes wrong among others alone


@dataclass
class Result:
    histories: int = 0
    steps: int = 0
    seconds: float = 0.0  # of processor, Java's included
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)


class Campaign:
    def __init__(self, root: Path, broker: BrokerProcess, tell: Tell) -> None:
        """root: a directory in which there is nothing yet."""
        self.result = Result()
        self._root, self._broker, self._tell = root, broker, tell
        self._made = 0

    def try_batch(
        self,
        number: int,
        size: int = generator.BATCH,
        shortens: bool = True,
        on_spark: bool = True,
    ) -> None:
        """Run one batch; what goes wrong stands in the result. on_spark: if it is its turn."""
        began, cpu = time.monotonic(), self._cpu()
        batch = self.run(generator.batch_of(number, size, on_spark))
        steps = len(batch.scripts[0].steps)
        cpu = self._cpu() - cpu
        self.result.histories += size
        self.result.steps += size * steps
        self.result.seconds += cpu
        self.result.counts += batch.world.counts
        failed = batch.failed()
        self._tell(
            f"batch {number}: {size} histories of {steps} steps, {len(failed)} violations, "
            f"{cpu:.1f} s of processor, {time.monotonic() - began:.1f} s"
        )
        for problem in batch.problems:
            self._found(Violation(f"batch {number}", problem, None))
        for one, model in failed:
            short = self._shortened(one, model.problems[0]) if shortens else None
            self._found(Violation(one.name, "; ".join(model.problems[:3]), short))

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

    def _found(self, violation: Violation) -> None:
        self.result.violations.append(violation)
        self._tell(f"VIOLATION {violation.name}: {violation.problem}")
        if violation.script is not None:
            self._tell(script.to_text(violation.script))

    def _cpu(self) -> float:
        return time.process_time() + self._broker.seconds()


def _kind_of(problem: str) -> str:
    """The problem without what is only so in this history."""
    told = re.sub(r"\d+|'[^']*'", "#", _WHERE.sub("", problem))
    return told.partition(":")[0][:60]
