"""A log's own part of the steps of a history, by chance and by the log's theme."""

import random
from itertools import count, cycle
from typing import Any

from tests.histories.script import Operation, Step
from tests.histories.themes import PLAIN, THEMES

LETTERS = "abcdefghijkl"
FIRST_COLD = 0x4E00  # keys that come once: a letter of a script that has enough of them
TRANSACTIONAL = (1, 2)
IDEMPOTENT = 3


class OwnSteps:
    """What befalls one log in the steps that it shares with others."""

    def __init__(self, chance: random.Random, topic_ids: bool) -> None:
        self._chance, self._topic_ids = chance, topic_ids
        self._is_new, self._is_moving = True, False
        self._theme = chance.choice(THEMES)
        self._weights = PLAIN | self._theme.weights
        self._keys = LETTERS[: chance.choice([2, 4, 6, 12])]
        self._skew = chance.choice([1, 3])
        self._codecs = chance.choice([["none"]] * 4 + [["none", "lz4", "zstd", "snappy", "gzip"]])
        self._bytes = chance.choice([0, 0, 30, 100])
        self._tombstones = chance.choice([0.1, 0.3, 0.5])
        self._sizes = chance.choice([[0, 2, 4, 6, 10], [0, 1, 2, 3]])
        self._records, self._hot = [1, 1, 2, 3, 5], cycle(LETTERS)
        self._cold = (chr(FIRST_COLD + n) for n in count())
        self._now_hot = next(self._hot)
        self._segments = [size + 6 * self._bytes for size in (200, 300, 300, 700, 2_000)]
        self._patience = [0, 1_000, 1_000, 60_000]
        self._lags, self._ratios = [0, 0, 0, 5_000], ["0", "0", "0.5"]
        if self._theme.is_sparse:
            self._bytes = 150
            self._records, self._sizes, self._segments = [4], [1, 2, 3], [800]
            self._patience, self._lags, self._ratios = [0], [0], ["0"]
        if self._theme.is_unique:
            self._tombstones, self._records, self._segments = 0.05, [1], [100 + self._bytes]
        if self._theme.long_moves:
            self._keys, self._tombstones, self._sizes = LETTERS, 0.5, [1, 2, 3, 4]
        self._turns_until_moved, self._is_cleaning, self._deletes_hot = 0, False, False
        self.config = self._config()

    def _config(self) -> dict[str, str]:
        chance = self._chance
        return {
            "cleanup.policy": chance.choice(self._theme.policies),
            "segment.bytes": str(chance.choice(self._segments)),
            "delete.retention.ms": str(chance.choice(self._patience)),
            "min.compaction.lag.ms": str(chance.choice(self._lags)),
            "min.cleanable.dirty.ratio": chance.choice(self._ratios),
            "retention.ms": str(chance.choice([2_000, 60_000, 600_000])),
            "index.interval.bytes": str(chance.choice([0, 100, 4_096])),
            "segment.index.bytes": "65536",
            "file.delete.delay.ms": str(chance.choice([0, 1_000, 60_000])),
        }

    def part_of(self, step: Step) -> dict[str, Any]:
        chance, what = self._chance, step["do"]
        if what == "broker":
            self._is_cleaning = self._theme.is_sparse and chance.random() < 0.5
            self._deletes_hot = self._is_cleaning
            return {"turns": [self._turn() for _ in step["clocks"]]}
        if what == "tamper":
            return {"ops": self._tampering()}
        own: dict[str, Any] = {}
        if what == "run":
            own["take"] = chance.random() < 0.85
        if step.get("kill") in ("logs", "retention"):
            own["cut"] = chance.choice([chance.randrange(12), chance.randrange(80)])
        return own

    def _turn(self) -> list[Operation]:
        chance = self._chance
        operations: list[Operation] = []
        self._turns_until_moved -= 1
        if self._is_new:
            self._is_new = False
            operations.append(self._create())
        names, weights = list(self._weights), list(self._weights.values())
        for what in chance.choices(names, weights, k=chance.choice(self._sizes)):
            operations += self._operations(what)
        if chance.random() < (0.9 if self._is_cleaning else 0.6):
            operations += [{"op": "roll"}, self._append()][: chance.randint(1, 2)]
            operations += [{"op": "clean"}] if self._is_cleaning else []
        return operations

    def _create(self) -> Operation:
        return {"op": "create", "dir": self._chance.randrange(2), "id": self._topic_ids}

    def _operations(self, what: str) -> list[Operation]:
        chance = self._chance
        if what == "append":
            return [self._append()]
        if what == "transaction":
            return self._transaction()
        if what == "move":
            return self._move()
        if what == "recreate":
            return [{"op": "delete"}, self._create()]
        if what == "lag":
            return [{"op": chance.choice(["lag", "lag", "catch_up"])}]
        if what == "config":
            return [{"op": "config", "config": {"segment.bytes": str(chance.choice([900, 3_000]))}}]
        if what in ("delete_records", "truncate"):
            return [{"op": what, "part": self._part()}]
        return [{"op": what}]

    def _part(self) -> float:
        return self._chance.randrange(100) / 100

    def _transaction(self) -> list[Operation]:
        """Some of it: another turn goes on with it, or ends it."""
        chance = self._chance
        pid = chance.choice([*TRANSACTIONAL, *TRANSACTIONAL, IDEMPOTENT])
        choice = chance.random()
        if pid == IDEMPOTENT or choice < 0.5:
            return [self._append() | {"pid": pid, "txn": pid != IDEMPOTENT}]
        if choice < 0.95:
            return [{"op": "end", "pid": pid, "commit": chance.random() < 0.6}]
        return [{"op": "new_epoch", "pid": pid}]

    def _move(self) -> list[Operation]:
        """To the other directory; a copy that is begun mostly stays for a while."""
        if not self._is_moving:
            self._is_moving = True
            self._turns_until_moved = self._chance.randint(3, 8) if self._theme.long_moves else 0
            return [{"op": "start_move"}, {"op": "copy", "part": self._part()}]
        if self._turns_until_moved > 0:
            return []
        what = self._chance.choice(["copy", "finish_move", "finish_move", "cancel_move"])
        self._is_moving = what == "copy"
        return [{"op": what, "part": self._part()} if what == "copy" else {"op": what}]

    def _append(self) -> dict[str, Any]:
        chance = self._chance
        keys = self._some_keys(chance.choice(self._records))
        operation: dict[str, Any] = {"op": "append", "keys": keys, "bytes": self._bytes}
        codec = chance.choice(self._codecs)
        if codec != "none":
            operation["codec"] = codec
        if chance.random() < 0.1:
            operation["late"] = chance.choice([1, 1_000, 30_000])
        return operation

    def _some_keys(self, size: int) -> str:
        chance = self._chance
        if self._theme.is_unique:
            return self._with_tombstones("".join(next(self._cold) for _ in range(size)))
        if self._theme.is_sparse:  # one that changes until it is deleted, with others that never do
            hot = self._now_hot
            if self._deletes_hot:
                self._deletes_hot, self._now_hot, hot = False, next(self._hot), hot.upper()
            return hot + "".join(next(self._cold) for _ in range(size - 1))
        few = len(self._keys)
        return self._with_tombstones(
            "".join(self._keys[int(few * chance.random() ** self._skew)] for _ in range(size))
        )

    def _with_tombstones(self, keys: str) -> str:
        dead = self._tombstones
        return "".join(k.upper() if self._chance.random() < dead else k for k in keys)

    def _tampering(self) -> list[Operation]:
        chance = self._chance
        if chance.random() >= self._theme.lost_entries:
            return []
        if self._theme.is_sparse:
            return [{"op": "lose", "file": "cleaner"}]
        file = chance.choice(["cleaner"] * 4 + ["start", "recovery"])
        if chance.random() < 0.75:
            return [{"op": "lose", "file": file}]
        return [{"op": "old", "file": file, "part": self._part()}]
