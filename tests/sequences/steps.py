"""What happens to the logs of a sequence between its copy and its comparison."""

import json
import random
from collections.abc import Sequence

from storage.formats import checkpoint
from tests.histories.cuts import NEVER, Cuts, Limits
from tests.sequences.world import SequenceWorld

OK, REFUSED, PARTIAL = 0, 3, 4
KEYS = "abcdefghijkl"
ADVANCES_MS = (0, 10, 1_000, 1_000, 5_000, 61_000, 700_000, 86_400_000)


class Steps:
    """Plays random steps. Each leaves behind what its report says, if it writes one."""

    def __init__(self, world: SequenceWorld, chance: random.Random, truncates: bool) -> None:
        self._world, self._chance, self._truncates = world, chance, truncates
        self._kept: list[str] = []
        self._is_settled = True
        self.has_unreported_run = False  # one that was killed before it could write its report
        self.done: list[str] = []  # for a person

    def play(self, count: int) -> None:
        weights = {
            self.run: 5, self.killed_run: 3, self.recover: 1, self.kafka: 5, self.roll: 2,
            self.append: 2, self.delete_records: 1, self.undo: 1, self.copy: 1,
        }  # fmt: skip
        if self._truncates:
            weights[self.truncate] = 3
        for step in self._chance.choices(list(weights), list(weights.values()), k=count):
            self._world.advance(self._chance.choice(ADVANCES_MS))
            self.done.append(step.__name__)
            step()
        if not self._is_settled:
            self.done.append("run")
            self.run()

    def run(self, keeps: bool = False) -> None:
        """A whole one. It may keep what it replaces, and take some logs alone."""
        report, kept = self._world.new_report(), self._world.root / "kept"
        before = {path.name for path in kept.iterdir()}
        words = [*self._run_words(), "--report", report]
        keeps = keeps or self._chance.random() < 0.4
        words += ["--keep-originals", kept] if keeps else []
        self._world.ours(*words, codes=(OK, PARTIAL))
        self._world.give(report)
        self._kept += sorted({path.name for path in kept.iterdir()} - before)
        self._is_settled = True

    def _run_words(self) -> list[object]:
        world = self._world
        words: list[object] = ["run", world.now_dir, *world.topic_configs()]
        words += ["--work-dir", world.root / "work", "--as-of", world.now_ms]
        if self._chance.random() < 0.3:
            some = self._some()
            words += ["--include", "|".join(name.removesuffix("-0") for name in some)]
        return words if world.is_clean() else [*words, "--recover-first"]

    def killed_run(self) -> None:
        """Each log at a moment of its own. SIGTERM leaves a report that has the clock alone."""
        world = self._world
        by_log = {name: self._chance.choice([NEVER, *range(0, 30, 2)]) for name in world.partitions}
        limits = Limits(by_log=by_log, ends_at=checkpoint.CLEANER_OFFSET)
        cuts = Cuts([world.now_dir], world.root / "trash", limits)
        world.carry_out(*self._run_words(), cuts=cuts)
        world.counts["run killed"] += 1
        world.set_times()
        self._is_settled = False
        if self._chance.random() < 0.5:
            world.counts["run killed, with a report"] += 1
            report = world.new_report()
            report.write_text(json.dumps(_interrupted(world.now_ms)))
            world.give(report)
        else:
            self.has_unreported_run = True

    def recover(self) -> None:
        report = self._world.new_report()
        words = ["recover", self._world.now_dir, *self._world.topic_configs(), "--report", report]
        self._world.ours(*words, codes=(OK, PARTIAL))
        self._world.give(report)
        self._is_settled = True

    def undo(self) -> None:
        if not self._kept:
            self.run(keeps=True)
        if not self._kept:
            return  # there was nothing to clean
        report = self._world.new_report()
        path = self._world.root / "kept" / self._kept.pop()
        self._world.ours("undo", path, "--report", report, codes=(OK, REFUSED, PARTIAL))
        self._world.give(report)
        self._is_settled = True

    def copy(self) -> None:
        """What comes later is done to a copy, which a run has made."""
        self._settle()
        place, report = self._world.new_copy(), self._world.new_report()
        words = [*self._run_words(), "--output", place, "--report", report]
        words = [w for w in words if w != "--recover-first"]
        self._world.ours(*words, codes=(OK, PARTIAL))
        if place.exists():
            self._world.give(report)
            self._world.now_dir = place
            self._kept = []  # of another directory
            self._world.set_times()

    def roll(self) -> None:
        for name in self._some():
            self._change("roll", name)

    def append(self) -> None:
        for name in self._some():
            path = self._world.root / "records.jsonl"
            path.write_text("".join(self._records()))
            self._change("append", name, "--records", path, "--only-replica")

    def _records(self) -> list[str]:
        now = self._world.now_ms
        keys = self._chance.choices(KEYS, k=self._chance.randint(1, 4))
        values = [None if self._chance.random() < 0.4 else f"{key}{now}" for key in keys]
        return [
            json.dumps({"key": key, "value": value, "timestamp": now}) + "\n"
            for key, value in zip(keys, values, strict=True)
        ]

    def delete_records(self) -> None:
        for name in self._some():
            policy = self._world.settings[name.removesuffix("-0")]["cleanup.policy"]
            if "delete" in policy:
                before = self._within(name)
                self._change("delete-records", name, "--before", before, "--only-replica")

    def truncate(self) -> None:
        ends = self._world.truncated_to
        for name in self._some():
            self._change("truncate", name, "--to", self._within(name), "--only-replica")
            found = self._world.carry_out("log", "offsets", self._world.now_dir, name).document
            ends[name] = min(found["log_end"], ends.get(name, found["log_end"]))  # of a batch

    def _within(self, name: str) -> int:
        """An offset of a log."""
        found = self._world.carry_out("log", "offsets", self._world.now_dir, name).document
        return self._chance.randint(found["log_start"], found["log_end"])

    def _change(self, verb: str, name: str, *words: object) -> None:
        self._settle()
        report = self._world.new_report()
        command = ["log", verb, self._world.now_dir, name, *words, *self._world.topic_configs()]
        command += ["--yes", "--report", report]
        # a log that is cut at its log start may end below it, where its next start begins anew
        codes = (OK, REFUSED) if verb == "truncate" else (OK,)
        unclean = [] if self._world.is_clean() else ["--recover-first"]
        self._world.ours(*command, *unclean, codes=codes)
        self._world.give(report)

    def kafka(self) -> None:
        """A broker starts, lets its cleaner and its retention work, and stops."""
        world, chance = self._world, self._chance
        dirs = [str(world.now_dir), str(world.histories.dirs[1])]
        configs = world.settings
        world.broker.ask("start", dirs=dirs, now=world.now_ms, configs=configs)
        for _ in range(chance.choice([1, 1, 2])):
            operations = [
                {"log": name, "op": op} for name in self._some() for op in _upkeep(chance)
            ]
            answer = world.broker.ask("turn", now=world.now_ms, ops=operations)
            for operation, result in zip(operations, answer["results"], strict=True):
                what = "cleaned" if result.get("cleaned") else operation["op"]
                world.counts[f"kafka: {what}"] += 1
            world.advance(chance.choice(ADVANCES_MS))
        world.broker.ask("stop", clean=chance.random() < 0.85)
        world.set_times()
        self._is_settled = True

    def _settle(self) -> None:
        if not self._is_settled:
            self.recover()

    def _some(self) -> Sequence[str]:
        names = self._world.partitions
        return [name for name in names if self._chance.random() < 0.5] or names[:1]


def _upkeep(chance: random.Random) -> list[str]:
    return chance.choice([["clean"], ["clean"], ["roll", "clean"], ["retain"], ["clean", "retain"]])


def _interrupted(now_ms: int) -> dict[str, object]:
    """What a run leaves that got SIGTERM in its swaps."""
    return {
        "schema_version": 1,
        "command": "run",
        "status": "interrupted",
        "exit_code": 143,
        "changed": True,
        "started_at_ms": now_ms,
        "as_of_ms": now_ms,
    }
