"""Random scripts for the engine: the same seed gives the same script.

The life of one log of a few kilobytes in many small segments, made so that rules collide: indexes
that are full, reads and truncations at every kind of boundary, producers that repeat, skip and are
fenced, transactions across segments, offsets two billion apart, crashes with damage, all three
rules of retention. Every script weighs the operations differently.
"""

import json
from collections.abc import Callable

from tests.engine.script_ends import Ends
from tests.engine.script_values import Json, Options

EVERYTHING = Options()


class Script(Ends):
    """The life of one log, drawn by weights of its own."""

    def table(self) -> dict[Callable[[], None], float]:
        """Every operation with its weight; each script loves some and neglects others."""
        on = self.options
        weights = {
            self.append_plain: 10,
            self.append_old_client: 0.7 if on.legacy else 0,
            self.append_by_producer: 12,
            self.append_again: 3,
            self.end_txn: 5 if on.txn else 0,
            self.transactions: 1.2 if on.txn else 0,
            self.verify: 0.4 if on.txn else 0,
            self.append_as_follower: 3 if on.follower else 0,
            self.append_several_as_follower: 2 if on.follower else 0,
            self.append_legacy_as_follower: 0.7 if on.legacy and on.follower else 0,
            self.append_invalid: 4 if on.invalid else 0,
            self.read: 9,
            self.read_all: 0.8,
            self.look_up: 6,
            self.roll: 2,
            self.flush: 1.2,
            self.truncate: 1.8,
            self.delete_records: 1.6,
            self.high_watermark: 3,
            self.reconfigure: 1,
            self.retention: 2,
            self.new_leader: 1.5,
            self.producers: 1,
            self.checkpoint: 1,
            self.files: 0.7,
            self.mtime: 0.4,
            self.clean: 1.2 if on.cleans else 0,
            self.time: 9,
            self.restart: 1.8,
            self.lose_directory: 0.15 if on.hide else 0,
        }
        return {what: weight * self.one_of(0.2, 1, 1, 1, 3) for what, weight in weights.items()}

    def life(self) -> list[Json]:
        self.birth()
        table = self.table()
        length = self.options.ops or self.rng.randint(40, 160)
        while len(self.lines) < length:
            if self.legacy and self.chance(0.5):
                self.legacy -= 1
                self.append_legacy()
            self.rng.choices(list(table), list(table.values()))[0]()
        self.emit("files")
        self.emit(self.one_of("close", "close", "crash"))
        self.emit("files")
        return self.lines


def script(seed: int, options: Options = EVERYTHING) -> str:
    """One script, as lines of JSON."""
    return "".join(json.dumps(line) + "\n" for line in Script(seed, options).life())
