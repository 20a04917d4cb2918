"""Random `oracle build` scripts: the same seed gives the same log.

A log of a few kilobytes in many small segments, with what a real one collects over its life:
codecs and their levels, tombstones, null keys, headers, idempotent and transactional producers,
commits, aborts, open transactions, producers that have expired, gaps in the offsets, leader epochs,
legacy batches, earlier cleanings with their delete horizons, a raised log start offset, a high
watermark below the end. Every script ends at the clock of the next cleaning, the same for all, so
that one round can take them.

python -m tests.oracle.random_script SEED [--topic NAME] [--no-txn] [--no-legacy] …
"""

import argparse
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Operation = dict[str, Any]  # a line of a script, as JSON has it

END_MS = 1_700_000_000_000
A_DAY_AND_AN_HOUR_MS = 90_000_000  # any producer has expired by then
FOREVER_MS = 2**63 - 1
IDEMPOTENT_ONLY = (3, 4)  # these producer ids never open a transaction


@dataclass(frozen=True, slots=True)
class ScriptOptions:
    topic: str = "t"
    txn: bool = True
    legacy: bool = True
    codecs: bool = True
    cleans: bool = True
    operations: int | None = None  # None: 20 to 120
    end_ms: int = END_MS


def random_script(seed: int, options: ScriptOptions | None = None) -> list[Operation]:
    """The lines of the script; clocks and timestamps are laid so that the last clock is end_ms."""
    options = options or ScriptOptions()
    lines = _Life(random.Random(seed), options, allow_magic_0=seed % 2 == 1).lines()
    shift_ms = options.end_ms - lines[-1]["ms"]
    for line in lines:
        for name in ("ms", "from"):
            if name in line:
                line[name] += shift_ms
        if line["op"] == "append":
            for record in line["records"]:
                record["ts"] += shift_ms
    return lines


@dataclass(slots=True)
class _Producer:
    epoch: int = 0
    next_sequence: int = 0
    in_transaction: bool = False


@dataclass(slots=True)
class _Life:
    """A log from its creation to the clock of the next cleaning."""

    rng: random.Random
    options: ScriptOptions
    allow_magic_0: bool
    out: list[Operation] = field(default_factory=list)
    now_ms: int = 0
    end_offset: int = 0  # a lower bound of the log end offset
    leader_epoch: int = 0
    producers: dict[int, _Producer] = field(default_factory=dict)
    # drawn at birth
    retention_ms: int = 0
    lag_ms: int = 0
    segment_bytes: int = 0
    policy: str = ""
    null_keys: bool = False  # only a topic that was not compacted before has them
    legacy_left: int = 0  # appends of old messages before new ones take over
    legacy_log: bool = False
    keys: list[str] = field(default_factory=list)
    codecs: list[str] = field(default_factory=list)

    def lines(self) -> list[Operation]:
        self._be_born()
        for _ in range(self.options.operations or self.rng.randint(20, 120)):
            self._let_time_pass()
            self._do_something()
        self._decide_transactions()
        self._end()
        return self.out

    def _emit(self, op: str, **fields: Any) -> None:
        self.out.append({"op": op, **fields})

    def _config(self, settings: dict[str, str]) -> None:
        self.out.append({"op": "config", **settings})

    def _be_born(self) -> None:
        rng = self.rng
        self.retention_ms = rng.choice([0, 50, 1_000, 600_000])
        self.lag_ms = rng.choice([0, 0, 0, 500])
        self.segment_bytes = rng.choice([1_000, 1_000, 3_000, 10_000, 10_000, 500_000])
        self.policy = rng.choice(["compact", "compact", "compact,delete"])
        self.null_keys = rng.random() < 0.3
        self.keys = [f"key-{i}" for i in range(rng.choice([3, 10, 60]))] + [""]
        compressed = ["none", "none", "gzip", "snappy", "lz4", "zstd"]
        self.codecs = compressed if self.options.codecs else ["none"]
        self.legacy_log = self.options.legacy and rng.random() < 0.3
        self.legacy_left = rng.randint(3, 25) if self.legacy_log else 0
        self._emit("partition", topic=self.options.topic, partition=0)
        timestamp_types = ["CreateTime", "CreateTime", "LogAppendTime"]
        self._config(
            {
                "segment.bytes": str(self.segment_bytes),
                "index.interval.bytes": str(rng.choice([0, 100, 1_000, 4_096])),
                "segment.index.bytes": str(rng.choice([1_200, 10_485_760, 10_485_760])),
                "delete.retention.ms": str(self.retention_ms),
                "min.compaction.lag.ms": str(self.lag_ms),
                "min.cleanable.dirty.ratio": rng.choice(["0.0", "0.01", "0.3"]),
                "cleanup.policy": "delete" if self.null_keys else self.policy,
                "max.compaction.lag.ms": str(rng.choice([FOREVER_MS, FOREVER_MS, 2_000])),
                "message.timestamp.type": rng.choice(timestamp_types),
            }
        )
        self._emit("clock", ms=self.now_ms)

    def _let_time_pass(self) -> None:
        self.now_ms += self.rng.choice([0, 1, 10, 300])
        if self.rng.random() < 0.005:
            self.now_ms += A_DAY_AND_AN_HOUR_MS
        self._emit("clock", ms=self.now_ms)

    def _do_something(self) -> None:
        choice = self.rng.random()
        if self.legacy_left:
            self._append_legacy()
        elif choice < 0.45:
            self._append()
        elif choice < 0.58 and not self.options.txn:
            self._append_by_producer(self.rng.choice([*IDEMPOTENT_ONLY, 9_000_000_000]))
        elif choice < 0.70 and self.options.txn:
            self._append_by_producer(self.rng.choice([1, 2, 3, 9_000_000_000]))
        elif choice < 0.82 and self.options.txn:
            self._end_a_transaction()
        elif choice < 0.86:
            self._emit("roll")
        elif choice < 0.88:
            self.leader_epoch += 1
        elif choice < 0.91:
            self._append_as_follower()
        elif choice < 0.95 and self.options.cleans:
            self._clean()
        elif choice < 0.96 and self.end_offset > 4:
            self._emit("snapshot")
        elif choice < 0.97 and self.end_offset > 4:
            self._emit("log_start", offset=self.rng.randrange(self.end_offset // 2))
        elif choice < 0.98 and self.segment_bytes >= 500_000:
            self._fill()

    def _size(self) -> int:
        return self.rng.choice(
            [1, 1, 2, 3, 6] if self.segment_bytes < 3_000 else [1, 1, 2, 3, 8, 20]
        )

    def _codec(self) -> dict[str, Any]:
        codec = self.rng.choice(self.codecs)
        if codec in ("gzip", "lz4", "zstd") and self.rng.random() < 0.2:
            return {"codec": codec, "level": self.rng.choice([1, 5, 9])}
        return {"codec": codec}

    def _records(self, count: int) -> list[Operation]:
        rng, out = self.rng, []
        for _ in range(count):
            key = None if self.null_keys and rng.random() < 0.05 else rng.choice(self.keys)
            sizes = [0, 1, 5, 40, 300] if count < 3 else [0, 1, 5, 40]
            value = "v" * rng.choice(sizes) + str(rng.randrange(1000))
            dead = key is not None and rng.random() < 0.2
            record: Operation = {
                "k": key,
                "v": None if dead else value,
                "ts": self.now_ms - rng.choice([0, 0, 1, 700]),
            }
            if rng.random() < 0.1 and not self.legacy_log:
                record["h"] = [["h", "x"], ["", None], ["\u00e9\U0001f600", ""]][
                    : rng.randint(1, 3)
                ]
            out.append(record)
        return out

    def _append(self, **fields: Any) -> None:
        count = self._size()
        records, codec = self._records(count), self._codec()
        self._emit("append", records=records, leader_epoch=self.leader_epoch, **codec, **fields)
        self.end_offset += count

    def _append_legacy(self) -> None:
        self.legacy_left -= 1
        count = self._size()
        magic = self.rng.choice([0, 1]) if self.allow_magic_0 else 1
        codec = self.rng.choice([c for c in self.codecs if c != "zstd"])
        self._emit("append", magic=magic, codec=codec, records=self._records(count))
        self.end_offset += count

    def _append_legacy_without_keys(self) -> None:
        """The last of the round loses all its records: on that Kafka's cleaner stops (C-11.14)."""
        magic = self.rng.choice([0, 1]) if self.allow_magic_0 else 1
        codec = self.rng.choice([c for c in self.codecs if c != "zstd"])
        records = [record | {"k": None, "v": "lost"} for record in self._records(self._size())]
        self._emit("append", magic=magic, codec=codec, records=records)
        self.end_offset += len(records)

    def _append_by_producer(self, producer_id: int) -> None:
        producer = self.producers.setdefault(producer_id, _Producer())
        if not self.options.txn and self.rng.random() < 0.1:  # it starts again
            producer.epoch, producer.next_sequence = producer.epoch + 1, 0
        fields: dict[str, Any] = {"pid": producer_id, "epoch": producer.epoch}
        fields["seq"] = producer.next_sequence
        if self.options.txn and producer_id not in IDEMPOTENT_ONLY:
            fields["txn"] = producer.in_transaction = True
        before = self.end_offset
        self._append(**fields)
        producer.next_sequence += self.end_offset - before

    def _append_as_follower(self) -> None:
        """A follower copies what the leader has cleaned already: offsets with gaps."""
        rng, count = self.rng, self._size()
        start = self.end_offset + rng.choice([0, 5, 1_000])
        offsets = sorted(rng.sample(range(start, start + 3 * count), count))
        self._append_given(offsets)

    def _append_given(self, offsets: Sequence[int]) -> None:
        records, codec = self._records(len(offsets)), self._codec()
        fields = {"records": records, "leader_epoch": self.leader_epoch, **codec}
        self._emit("append", offsets=list(offsets), **fields)
        self.end_offset = offsets[-1] + 1

    def _fill(self) -> None:
        rng = self.rng
        batches, records = rng.choice([(3, 300), (30, 20)])
        self._emit(
            "fill", batches=batches, records=records, keys=200, value_bytes=rng.choice([20, 250]),
            tombstones=0.1, entropy=rng.choice([0.2, 1.0]), advance=3, seed=rng.randrange(1000),
            leader_epoch=self.leader_epoch, **self._codec(),
        )  # fmt: skip
        self.end_offset += batches * records
        self.now_ms += 3 * batches

    def _end_a_transaction(self) -> None:
        rng = self.rng
        undecided = [pid for pid, producer in self.producers.items() if producer.in_transaction]
        if not undecided:
            return
        pid = rng.choice(undecided)
        producer = self.producers[pid]
        if rng.random() < 0.3:  # the marker raises the epoch
            producer.epoch, producer.next_sequence = producer.epoch + 1, 0
            self._decide(pid, transaction_version=2)
        else:
            self._decide(pid)
        if rng.random() < 0.2:  # the producer is fenced and starts again
            self.producers[pid] = _Producer(epoch=producer.epoch + 1)

    def _decide(self, pid: int, **fields: Any) -> None:
        producer, commit = self.producers[pid], self.rng.random() < 0.5
        fields["leader_epoch"] = self.leader_epoch
        self._emit("end_txn", pid=pid, epoch=producer.epoch, commit=commit, **fields)
        producer.in_transaction = False
        self.end_offset += 1

    def _clean(self) -> None:
        self._emit("roll")
        self._config({"cleanup.policy": self.policy})
        slots = {"slots": self.rng.choice([2, 5, 20])} if self.rng.random() < 0.3 else {}
        self._emit("clean", **slots)
        if self.null_keys:
            self._config({"cleanup.policy": "delete"})
        self.now_ms += self.rng.choice([0, self.retention_ms, self.retention_ms + 1])

    def _decide_transactions(self) -> None:
        if self.options.txn and self.rng.random() < 0.6:  # usually all are decided in the end
            self._decide_open_ones()

    def _decide_open_ones(self) -> None:
        for pid, producer in self.producers.items():
            if producer.in_transaction:
                self._decide(pid)

    def _end(self) -> None:
        rng = self.rng
        if self.legacy_log and self.null_keys and rng.random() < 0.5:
            self._append_legacy_without_keys()
        self._emit("roll")
        self._config({"cleanup.policy": self.policy})
        last = {"k": "last", "v": "active segment", "ts": self.now_ms}
        self._emit("append", records=[last], leader_epoch=self.leader_epoch)
        if any(p.in_transaction for p in self.producers.values()) and rng.random() < 0.5:
            self._decide_open_ones()  # C-8.2: the data is in the round, its marker is not
        if rng.random() < 0.1:
            self._emit("high_watermark", offset=rng.randint(self.end_offset // 2, self.end_offset))
        if rng.random() < 0.05:  # restored from elsewhere, or left over from an earlier log
            self._emit("checkpoint", offset=rng.randrange(2 * self.end_offset + 2))
        self.now_ms += rng.choice([0, 1, self.lag_ms, self.lag_ms + 1, self.retention_ms + 1])
        self.now_ms += rng.choice([0, 0, 0, 0, A_DAY_AND_AN_HOUR_MS])
        # the clock of old tombstones, and what a cleaned segment inherits
        ago_ms = rng.choice([0, 500, self.retention_ms])
        self._emit("mtime", **{"from": self.now_ms - ago_ms, "step": rng.choice([1, 10, 100])})
        self._emit("clock", ms=self.now_ms)


def _parse(arguments: Sequence[str]) -> tuple[int, ScriptOptions]:
    parser = argparse.ArgumentParser(prog="random_script", description="Print a random script.")
    parser.add_argument("seed", type=int)
    parser.add_argument("--topic", default="t")
    parser.add_argument("--ops", dest="operations", type=int)
    parser.add_argument("--end-ms", type=int, default=END_MS, help="the clock of the next cleaning")
    for flag in ("txn", "legacy", "codecs", "cleans"):
        parser.add_argument(f"--no-{flag}", dest=flag, action="store_false")
    values = vars(parser.parse_args(arguments))
    return values.pop("seed"), ScriptOptions(**values)


if __name__ == "__main__":
    for line in random_script(*_parse(sys.argv[1:])):
        sys.stdout.write(json.dumps(line) + "\n")
