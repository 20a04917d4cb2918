"""Logs that share a log directory, their copy from before, and what is given to `verify`."""

import contextlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from compactor import api
from storage.formats import clean_shutdown
from tests.histories import our_commands
from tests.histories.broker_process import Broker
from tests.histories.broker_steps import BrokerSteps
from tests.histories.cuts import Cuts
from tests.histories.our_commands import Ended
from tests.histories.script import Script, Step
from tests.histories.world import World

PRESENT = ("compactor.command_context.now_ms", "compactor.api.verifications.now_ms")


class SequenceWorld:
    """The directories, the clock, and every report since the copy was made."""

    def __init__(self, scripts: Sequence[Script], root: Path, broker: Broker) -> None:
        self.root, self.broker = root, broker
        self.histories = World(scripts, root / "logs")
        self.settings = {model.name: dict(model.config) for model in self.histories.models}
        self.partitions = [model.partition for model in self.histories.models]
        self.now_dir, self.before = self.histories.dirs[0], root / "before"
        self.reports: list[Path] = []
        self.truncated_to: dict[str, int] = {}  # what lies behind was appended since
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []  # of commands that did not end as they have to
        self._copies = 0
        (root / "topics.json").write_text(json.dumps(self.settings))
        (root / "kept").mkdir()
        (root / "work").mkdir()

    @property
    def now_ms(self) -> int:
        return self.histories.now_ms

    def advance(self, ms: int) -> None:
        self.histories.now_ms += ms

    def write(self, common: Step, own: Sequence[Step]) -> None:
        """Let a broker write the logs, and copy what it leaves."""
        BrokerSteps(self.histories, self.broker).broker(common, own)
        assert not self.histories.problems, self.histories.problems
        for model in self.histories.models:
            assert not model.problems, model.problems
        self.set_times()
        shutil.copytree(self.now_dir, self.before)

    def set_times(self) -> None:
        """The clock is not the machine's: no file is younger than it says."""
        now_ns = self.now_ms * 1_000_000
        for path in self.now_dir.glob("*/*.log"):
            if path.stat().st_mtime_ns > now_ns:
                os.utime(path, ns=(now_ns, now_ns))

    def new_copy(self) -> Path:
        """A place for a copy of the log directory."""
        self._copies += 1
        return self.root / f"copy{self._copies}"

    def new_report(self) -> Path:
        return self.root / f"report{len(self.reports)}.json"

    def give(self, report: Path) -> None:
        """Keep a report, if the command wrote one."""
        if report.exists():
            self.reports.append(report)

    def topic_configs(self) -> list[str]:
        return ["--topic-configs", str(self.root / "topics.json")]

    def ours(self, *words: object, codes: Sequence[int] = (0,)) -> Ended:
        """Carry out one of our commands, which has to end with one of these codes."""
        ended = self.carry_out(*words)
        name = " ".join(str(word) for word in words[: 2 if words[0] == "log" else 1])
        self.counts[f"{name} {ended.code}"] += 1
        if ended.code not in codes or ended.is_unforeseen:
            told = ended.document.get("error") or ended.said
            self.problems.append(f"{name} ended with {ended.code}: {told}")
        self.set_times()
        return ended

    def carry_out(self, *words: object, cuts: Cuts | None = None) -> Ended:
        """In the present of the histories."""
        with self.present():
            return our_commands.carry_out([str(word) for word in words], cuts)

    @contextlib.contextmanager
    def present(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name in PRESENT:
                patch.setattr(name, lambda: self.now_ms)
            yield

    def compare(self, reports: bool, settings: bool) -> api.Comparison:
        """What `verify --against` compares, without what `verify` alone finds."""
        with self.present():
            given = [str(path) for path in self.reports] if reports else []
            known = api.known_of_cleanings(given, self.settings if settings else None)
            return api.verify_against(str(self.now_dir), str(self.before), None, known)

    def is_clean(self) -> bool:
        return (self.now_dir / clean_shutdown.CLEAN_SHUTDOWN).exists()


def problems_by_partition(
    compared: api.Comparison, partitions: Sequence[str]
) -> dict[str, list[str]]:
    """What a comparison has found, by partition; "" for what is of none."""
    found: dict[str, list[str]] = {}
    for finding in compared.findings:
        names = set(Path(finding.path).parts) & set(partitions)
        in_text = {name for name in partitions if f"{name} has" in finding.problem}
        for name in names or in_text or {""}:
            found.setdefault(name, []).append(f"{Path(finding.path).name}: {finding.problem}")
    return found
