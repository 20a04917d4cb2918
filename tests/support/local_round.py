"""A whole round in this process and without Spark: the same tasks, one after another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cleaner_jobs.local.in_process_engine import InProcessEngine
from cleaner_jobs.messages import RoundSettings, Row
from compactor.cleaning import cleaner_manager
from compactor.cleaning.cleaner_manager import RunSettings
from compactor.jobs.engines import Engine
from compactor.jobs.work_dir import SUBDIRECTORIES
from compactor.originals.originals_keeper import OriginalsKeeper
from compactor.outcome.round_report import CleaningReport
from compactor.planning import layout
from compactor.planning.round_plan import RoundPlan
from compactor.settings.rules import RunOptions
from storage.files.files import Disk
from storage.files.local import LOCAL
from tests.support.inline_workers import inline_local_engine

HASH_KEY = 0x0706050403020100, 0x0F0E0D0C0B0A0908

Rows = list[Row]
Take = Callable[[Sequence[Row]], None]


def settings_in(work_dir: Path, now_ms: int, dry_run: bool = False) -> RoundSettings:
    """Settings of a round with the work directory that its tasks expect."""
    for name in SUBDIRECTORIES:
        (work_dir / name).mkdir(parents=True, exist_ok=True)
    return RoundSettings("run", str(work_dir), now_ms, *HASH_KEY, dry_run)


class NoProgress:
    def stage(self, name: str, total: int) -> None:
        pass

    def advance(self, done: int) -> None:
        pass

    def swapped(self, groups: int) -> None:
        pass

    def message(self, text: str, log: str | None = None) -> None:
        pass


@dataclass
class LocalRound:
    """Runs rounds; what is put in `before` and `after` happens around a stage.

    The engine alone, over plans that a test has made: whole commands in this process are those of
    `local_command`, which go through `compactor.api` as every other.
    """

    work_dir: Path
    cores: int = 1
    before: dict[str, Callable[[], None]] = field(default_factory=dict)
    after: dict[str, Callable[[Rows], Rows]] = field(default_factory=dict)
    originals: OriginalsKeeper | None = None
    drop_null_keys: bool = True  # as Kafka's cleaner does
    disk: Disk = LOCAL
    stages: list[tuple[str, int]] = field(default_factory=list)  # as they ran, and their tasks
    tasks: Engine = field(default_factory=InProcessEngine)  # what runs them, in this process

    def run(
        self, plan: RoundPlan, dry_run: bool = False, map_capacity: int | None = None
    ) -> CleaningReport:
        options = RunOptions(
            dry_run=dry_run,
            work_dir=str(self.work_dir),
            map_capacity=map_capacity,
            drop_null_keys=self.drop_null_keys,
        )
        settings = RunSettings(
            options=options, originals=self.originals, engine=self, disk=self.disk
        )
        return cleaner_manager.run_round(plan, settings, NoProgress())

    def core_count(self) -> int:
        return self.cores

    def run_stage(self, work_dir: str, stage: str, tasks: list[dict[str, Any]], take: Take) -> Rows:
        self.stages.append((stage, len(tasks)))
        if stage in self.before:
            self.before[stage]()
        if stage not in self.after:
            return self.tasks.run_stage(work_dir, stage, tasks, take)
        rows = self.tasks.run_stage(work_dir, stage, tasks, lambda _: None)
        return self.after[stage](rows)


def engine_of(number: int) -> Engine:
    """Return what runs the tasks of a case in this process: for every other, the local engine."""
    return inline_local_engine() if number % 2 else InProcessEngine()


def open_local_round(work_dir: Path, monkeypatch: pytest.MonkeyPatch) -> LocalRound:
    """A round for a test; for its duration, the tasks are as those of large logs."""
    # logs of a test are small, and their groups are to be cut and joined as those of large ones
    monkeypatch.setattr(layout, "SMALLEST_SHARE_BYTES", 1)
    work_dir.mkdir(exist_ok=True)
    return LocalRound(work_dir)
