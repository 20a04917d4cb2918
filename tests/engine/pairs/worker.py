"""A process that does what it is asked to in a log directory, and waits at each operation on a file
until it may go on: `python -m tests.engine.pairs.worker`. Lines of JSON come in and go out.

    {"command": "log roll", "operation": null, "seed": 7, "root": "/tmp/x"}
"""

import json
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from compactor import api
from compactor.errors import RefusedError, UsageError
from compactor.offline_log.truncate import Outcome
from compactor.reason_codes import ReasonCode
from storage.files import local
from storage.files.local import LOCAL
from storage.log.log_dir_lock import LogDirLockedError, lock_log_dir
from tests.engine.pairs.models import read_models, write_models
from tests.engine.pairs.story import COMPACT, NOW_MS, OPERATIONS, OwnLog, Place, Story, Written

TRIES = 12
SYNCS = ("sync_file", "sync_directory")
RULES = api.Rules(
    topic_configs={topic: COMPACT | {"cleanup.policy": "compact,delete"} for topic in ("t", "u")},
    as_of=NOW_MS,
    any_clock=True,
)
# the last one: `log move` has no --recover-first
_REFUSED = (ReasonCode.LOCK_HELD, ReasonCode.BROKER_RUNNING, ReasonCode.UNCLEAN_SHUTDOWN)


class Speaker:
    """Of the main thread alone: the others of this process are at work while that waits."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)
        self._main = threading.current_thread()

    def say(self, told: object) -> None:
        self._out.write(json.dumps(told) + "\n")

    def step(self) -> None:
        if threading.current_thread() is self._main:
            self.say("step")
            sys.stdin.readline()


def stepping(before: Callable[..., Any], step: Callable[[], None], is_left_out: bool) -> Any:
    def call(*arguments: Any, **more: Any) -> Any:
        step()
        return None if is_left_out else before(*arguments, **more)

    return call


def watch(step: Callable[[], None]) -> None:
    """Let each operation on a file of this machine be a step; nothing waits for a disk."""
    for kind in (local.LocalFiles, local._LocalChangingFile):
        for name, before in list(vars(kind).items()):
            if callable(before) and not name.startswith("_") and name not in ("held", "wrote"):
                is_sync = name in SYNCS or (name == "sync")
                watched = stepping(before, step, is_sync)
                is_static = isinstance(before, staticmethod)
                setattr(kind, name, staticmethod(watched) if is_static else watched)


class Life:
    """One life of a manager, or one command."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.root = asked["root"]
        self.dirs = (f"{self.root}/a", f"{self.root}/b")
        self.chance = random.Random(asked["seed"])
        self.asked = asked
        self.is_done = False  # else it was refused each time

    def live(self) -> list[str]:
        """What was wrong."""
        for _ in range(TRIES):
            try:
                problems = self._manage() if self.asked["operation"] else self._command()
                self.is_done = True
                return problems
            except LogDirLockedError:
                continue
            except RefusedError as error:
                if error.reason_code not in _REFUSED:
                    raise
            except UsageError:
                return []  # as there is no such offset, or the log is elsewhere
        return []

    # ---- a manager ----------------------------------------------------------------------------

    def _manage(self) -> list[str]:
        place = Place(LOCAL, self.dirs, f"{self.root}/work-{self.chance.random()}-", self._locked)
        story = Story(self.chance, place)
        story.manager.start()
        story.manager.checkpoint_recovery_points()  # a start leaves those that were, as Kafka's
        story.logs = read_models(self.root)
        own = self.chance.choice(story.logs)
        for each in story.logs:
            if each is not own:
                each.is_known &= each.partition in story.manager.logs
        try:
            story.append(own)
            OPERATIONS[self.asked["operation"]][0](story, own)
        finally:
            write_models(self.root, story.logs)
        return story.wrong_now()

    @contextmanager
    def _locked(self, log_dir: str) -> Iterator[None]:
        with lock_log_dir(log_dir):
            yield

    # ---- a command ----------------------------------------------------------------------------

    def _command(self) -> list[str]:
        own = self.chance.choice(("t", "u"))
        found = [path for path in self.dirs if os.path.isdir(f"{path}/{own}-0")]
        if not found:
            raise UsageError("the log is being moved")
        log_dir = found[0]
        records = [self._record()]  # a batch, as the cleaner here has it
        options = api.ChangeOptions(
            rules=RULES,
            only_replica=True,
            recover_first=True,
            confirm=lambda outcome: self._note(own, records, outcome),
        )
        name, at = f"{own}-0", self.chance.randint(0, 8)
        match self.asked["command"]:
            case "log roll":
                api.log_roll(log_dir, name, options)
            case "log truncate":
                api.log_truncate(log_dir, name, at, options)
            case "log delete-records":
                api.log_delete_records(log_dir, name, at, options)
            case "log append":
                api.log_append(log_dir, name, records, "none", options)
            case "log abort":
                api.log_abort(log_dir, name, 7, options)
            case "log move":
                to = self.dirs[log_dir == self.dirs[0]]
                api.log_move(log_dir, name, to, options)
            case "recover":
                api.recover(list(self.dirs), RULES)
            case "recover --as-kafka":
                api.recover(list(self.dirs), RULES, as_kafka=True)
        return []

    def _record(self) -> api.NewRecord:
        value = None if self.chance.random() < 0.4 else b"by command"
        return api.NewRecord(bytes([self.chance.choice(b"abcd")]), value)

    def _note(self, topic: str, records: list[api.NewRecord], outcome: Outcome) -> bool:
        """Under the lock, before the change."""
        models = read_models(self.root)
        own = next(each for each in models if each.partition[0] == topic)
        match self.asked["command"]:
            case "log truncate":
                own.cut(outcome.after.log_end)
            case "log delete-records":
                own.begin(outcome.after.log_start)
            case "log append":
                self._note_append(own, records, outcome.before.log_end)
        write_models(self.root, models)
        return True

    def _note_append(self, own: OwnLog, records: list[api.NewRecord], first: int) -> None:
        for offset, record in enumerate(records, first):
            assert record.key is not None
            own.add(Written(offset, record.key, record.value))


def main() -> None:
    speaker = Speaker()
    watch(speaker.step)
    for line in sys.stdin:
        life = Life(json.loads(line))
        try:
            problems = life.live()
        except Exception as error:
            problems = [repr(error)]
        speaker.say({"problems": problems, "is_done": life.is_done})


if __name__ == "__main__":
    main()
