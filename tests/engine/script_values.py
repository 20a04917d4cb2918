"""What random scripts of the engine are made of: settings, records, sizes, times, codecs."""

import random
from typing import Any, NamedTuple

Json = dict[str, Any]

START_MS = 1_700_000_000_000
FAR = 2_147_483_648  # one more than an index can tell
CODECS = ["gzip", "snappy", "lz4", "zstd"]
PIDS = [1, 2, 3, 9_000_000_000]


class Options(NamedTuple):
    """What may be in a script."""

    txn: bool = True
    legacy: bool = True
    codecs: bool = True
    recompression: bool = True
    damage: bool = True
    cleans: bool = True
    follower: bool = True
    invalid: bool = True
    hide: bool = True
    ops: int | None = None  # how many lines; None: 40 to 160


class ScriptValues:
    """A script as far as it is written, and what the next line may say."""

    def __init__(self, seed: int, options: Options) -> None:
        self.rng = random.Random(seed)
        self.options = options
        self.lines: list[Json] = []
        self.now = START_MS
        self.epoch = 0  # of the leader
        self.end = 0  # about where the log ends
        self.legacy = 0  # appends of old messages that are still to come
        self.sent: dict[int, list[tuple[int, bool]]] = {}  # producer id -> the last batches it sent

    def emit(self, op: str, **fields: Any) -> None:
        self.lines.append({"op": op, **fields})

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def one_of(self, *values: Any) -> Any:
        return self.rng.choice(values)

    def settings(self) -> Json:
        rng = self.rng
        values = {
            "segment.bytes": rng.choice([300, 600, 1_000, 1_000, 3_000, 10_000]),
            "index.interval.bytes": rng.choice([0, 1, 100, 400, 4_096]),
            "segment.index.bytes": rng.choice(
                [12] + [24, 36, 60, 60, 120, 120, 1_200, 1_200, 1_200, 65_536] * 2
            ),
            "cleanup.policy": rng.choice(["delete", "delete", "compact", "compact,delete"]),
            "file.delete.delay.ms": rng.choice([0, 1_000, 60_000]),
        }
        rare: dict[str, list[Any]] = {
            "segment.ms": [100, 2_000],
            "max.message.bytes": [150, 400],
            "message.timestamp.type": ["LogAppendTime"],
            "message.timestamp.before.max.ms": [600, 5_000],
            "message.timestamp.after.max.ms": [0, 100],
            "retention.ms": [-1, 500, 5_000, 5_000],
            "retention.bytes": [0, 500, 2_000, 5_000],
            "flush.messages": [1, 5],
            "delete.retention.ms": [0, 1_000],
            "min.cleanable.dirty.ratio": ["0.0", "0.1", "0.1"],
            "min.compaction.lag.ms": [200],
            "max.compaction.lag.ms": [1_000],
        }
        for name, choices in rare.items():
            if self.chance(0.25):
                values[name] = rng.choice(choices)
        if self.options.recompression and self.options.codecs and self.chance(0.35):
            values["compression.type"] = rng.choice([*CODECS, "uncompressed"])
        if self.chance(0.05):
            values["preallocate"] = "true"
        return {name: str(value) for name, value in values.items()}

    def birth(self) -> None:
        self.emit("clock", ms=self.now)
        self.emit("config", **self.settings())
        if self.chance(0.15):
            self.emit("broker", **{"producer.id.expiration.ms": self.one_of(1_000, 60_000)})
        if self.options.txn and self.chance(0.1):
            self.emit("broker", **{"transaction.partition.verification.enable": True})
        if self.options.legacy and self.chance(0.25):
            self.legacy = self.rng.randint(3, 25)
        self.emit("settings", follow_high_watermark=self.chance(0.75))
        self.emit("open")

    def place(self) -> Any:
        """An offset near something that matters."""
        around = self.one_of(
            "start", "end", "hw", "lso", "recovery", f"segment[{self.rng.randint(-4, 3)}]"
        )
        shift = self.one_of(0, 0, 0, -1, 1, -2, 2, -5)
        if self.chance(0.15):
            return self.rng.randint(0, self.end + 2)
        return around + (f"{shift:+d}" if shift else "")

    def timestamp(self) -> Any:
        odd = self.chance(0.03)
        if odd:
            return self.one_of(-1, 0, self.now + 4_000_000)
        return self.now - self.one_of(0, 0, 0, 1, 1, 40, 700, 5_500, -50)

    def size(self) -> Any:
        return self.one_of(1, 1, 1, 2, 3, 6)

    def records(self, count: int) -> list[Json]:
        out = []
        for _ in range(count):
            key = None if self.chance(0.02) else self.one_of("", *(f"key-{i}" for i in range(8)))
            value = (
                None
                if self.chance(0.15)
                else "v" * self.one_of(0, 1, 5, 40, 90) + str(self.rng.randrange(1000))
            )
            record = {"k": key, "v": value, "ts": self.timestamp()}
            if self.chance(0.1):
                record["h"] = [["h", "x"], ["", None], ["\u00e9\U0001f600", ""]][
                    : self.rng.randint(1, 3)
                ]
            out.append(record)
        return out

    def bare(self, count: int) -> list[Json]:
        """Records without headers: old messages have none."""
        return [
            {name: value for name, value in r.items() if name != "h"} for r in self.records(count)
        ]

    def codec(self, legacy: bool = False) -> Any:
        if legacy and not self.options.recompression:  # most of these are compressed anew
            return {}
        if not self.options.codecs or self.chance(0.6):
            return {}
        codec = self.one_of(*(c for c in CODECS if not (legacy and c == "zstd")))
        return (
            {"codec": codec, "level": self.one_of(1, 5, 9)}
            if codec != "snappy" and self.chance(0.2)
            else {"codec": codec}
        )

    def leader(self) -> Json:
        return {"leader_epoch": self.epoch} if self.epoch else {}

    def roll(self) -> None:
        self.emit("roll")
