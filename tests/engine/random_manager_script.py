"""Random scripts for a log manager: several logs in one or two directories.

All that a script of one log does, on one log or another, and what only their manager does with
them: create, delete, move, truncate, the tasks, starts and ends with damage in between.
"""

import json
from collections.abc import Callable
from typing import Any

from tests.engine.random_engine_script import EVERYTHING, Script
from tests.engine.script_values import Json, Options

LOGS = ["t-0", "t-1", "u-0", "v-0"]
TASKS = ["retention", "flush", "checkpoint_recovery_points", "checkpoint_log_starts"]
NOT_OF_ONE_LOG = {
    *("manager", "settings", "clock", "broker", "files"),
    *("startup", "shutdown", "crash", "task", "truncate_logs"),
}


class ManagerScript(Script):
    """The life of a few logs under one manager."""

    def __init__(self, seed: int, options: Options) -> None:
        super().__init__(seed, options._replace(hide=False))
        self.log = LOGS[0]
        self.created: list[str] = []
        self.directories = 1

    def emit(self, op: str, **fields: Any) -> None:
        if op == "config":
            kept = {name: value for name, value in fields.items() if name != "preallocate"}
            fields = {"topic": self.log.split("-")[0], **kept}
        elif op not in NOT_OF_ONE_LOG:
            fields = {"log": self.log, **fields}
        super().emit(op, **fields)

    def birth(self) -> None:
        self.directories = self.one_of(1, 2, 2)
        self.emit("manager", dirs=self.directories)
        self.emit("clock", ms=self.now)
        for log in ("t-0", "u-0", "v-0"):
            self.log = log
            self.emit("config", **self.settings())
        self.emit("settings", follow_high_watermark=self.chance(0.75))
        self.emit("startup")
        for log in self.rng.sample(LOGS, 3):
            self.log = log
            self.create()

    def create(self) -> None:
        self.created = sorted({*self.created, self.log})
        self.emit("create", dir=self.rng.randrange(self.directories))

    def move(self) -> None:
        """To another directory, in its simplest form: the new copy is empty."""
        self.emit("create", future=True, dir=self.rng.randrange(self.directories))
        if self.chance(0.6):
            follower = {"as": "follower"}
            self.emit("append", future=True, records=self.records(1), base_offset="end", **follower)
        if self.chance(0.8):
            self.emit("replace_with_future")

    def delete_log(self) -> None:
        self.emit("delete_log", **({"stray": True} if self.chance(0.1) else {}))
        self.created = [log for log in self.created if log != self.log]
        if self.chance(0.6):
            self.create()

    def task(self) -> None:
        self.emit("task", name=self.one_of(*TASKS))

    def truncate_logs(self) -> None:
        if self.chance(0.3):
            self.emit("truncate_log_fully", offset=self.one_of("end", "start", "end+5"))
        else:
            self.emit("truncate_logs", offsets={self.log: self.place()})

    def truncate(self) -> None:
        """By the log itself. Ours lowers its recovery point with it, Kafka's only its manager's
        truncation (docs/differences.md): here it is written at once."""
        super().truncate()
        self.emit("task", name="checkpoint_recovery_points")

    def restart(self) -> None:
        self.emit("task", name=self.one_of("checkpoint_recovery_points", "checkpoint_log_starts"))
        self.emit(self.one_of("shutdown", "crash"))
        if self.options.damage and self.chance(0.6):
            self.damage()
        if self.chance(0.3):
            self.emit("files")
        self.emit("startup", **({"stray": [self.rng.choice(LOGS)]} if self.chance(0.05) else {}))

    def checkpoint(self) -> None:
        self.task()

    def damage(self) -> None:
        before = len(self.lines)
        super().damage()
        for line in self.lines[before:]:
            line["dir"] = self.rng.randrange(self.directories)

    def table(self) -> dict[Callable[[], None], float]:
        more: dict[Callable[[], None], float] = {
            self.create: 1,
            self.delete_log: 1,
            self.task: 4,
            self.truncate_logs: 1.5,
            self.move: 0.6 if self.directories > 1 else 0,
        }
        return {self.on_a_log(what): weight for what, weight in (super().table() | more).items()}

    def on_a_log(self, what: Callable[[], None]) -> Callable[[], None]:
        def chosen() -> None:
            known = self.created if self.created and self.chance(0.97) else LOGS
            self.log = self.rng.choice(known)
            what()

        return chosen

    def life(self) -> list[Json]:
        lines = super().life()
        for line in lines[-3:]:
            if line["op"] == "close":
                line["op"] = "shutdown"
                line.pop("log")
        return lines


def script(seed: int, options: Options = EVERYTHING) -> str:
    """One script, as lines of JSON."""
    return "".join(json.dumps(line) + "\n" for line in ManagerScript(seed, options).life())
