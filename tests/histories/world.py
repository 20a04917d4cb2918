"""What histories that share log directories have in common while they go on."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.histories.log_model import LogModel
from tests.histories.script import Script, Step

FIRST_CLOCK_MS = 1_700_000_000_000
_META = "version={version}\nbroker.id=1\nnode.id=1\ncluster.id=histories-histories-hi\n"


class World:
    """The directories, the clock, and a model of each log."""

    def __init__(self, scripts: Sequence[Script], root: Path) -> None:
        self.root = root
        self.dirs = [root / name for name in ("d0", "d1")]
        self.models = [LogModel(f"h{n}", dict(s.config)) for n, s in enumerate(scripts)]
        self.by_partition = {model.partition: model for model in self.models}
        self.problems: list[str] = []  # of no history alone
        self.counts: Counter[str] = Counter()  # of what was done
        self.now_ms = FIRST_CLOCK_MS
        self.step = ""  # for whoever reads of a problem
        self.stopped_well = False  # the broker, the last time
        self.settled = False  # whether nothing was cut short that is still to be set right
        for path in self.dirs:
            path.mkdir(parents=True)
            version = int(scripts[0].topic_ids)
            (path / "meta.properties").write_text(_META.format(version=version))

    def living(self, own: Sequence[Step]) -> Iterator[tuple[LogModel, Step]]:
        """The histories that have not gone wrong yet, each with its own part of a step."""
        for model, step in zip(self.models, own, strict=True):
            if not model.problems:
                yield model, step

    def note(self, model: LogModel, problems: Iterable[str]) -> None:
        """problems: of one moment. What comes after the first of them is of no interest."""
        found = [f"{self.step}: {problem}" for problem in problems]
        if not model.problems:
            model.problems += found

    def note_all(self, problem: str) -> None:
        self.problems.append(f"{self.step}: {problem}")

    def set_times(self) -> None:
        """The clock is not the machine's: no segment is younger than it says."""
        now_ns = self.now_ms * 1_000_000
        for directory in self.dirs:
            for path in directory.glob("*/*.log"):
                if path.stat().st_mtime_ns > now_ns:
                    os.utime(path, ns=(now_ns, now_ns))
