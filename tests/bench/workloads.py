"""The logs that are measured, each as a script for the oracle. Pure.

All of the matrix have about the same number of records for a width of values, so that the codecs
can be held against each other. The two logs of the growth pair differ in nothing but their length:
five times the batches over five times the keys, so that the same share of records is dropped. The
keys of the longer stay below 5 million, the most that Kafka's map of 128 MiB takes in one round.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

TOPIC_PARTITION = "t-0"  # what the oracle calls a log by default
NOW_MS = 1_700_086_400_000  # a day after the clock of a script begins; for both cleaners
# For both cleaners; everything else as by default. Kafka's goes round after round until nothing is
# dirty, which takes a ratio of 0: at its default it leaves what is less than half of the log.
TOPIC_CONFIG = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}

KAFKA, COPY = "kafka", "cp"
COLD, WARM = "cold", "warm"  # ours on Spark
LOCAL_COLD, LOCAL = "local-cold", "local"  # ours in processes of this host; the second is warm
OURS = "ours"  # where there is neither cold nor warm
DRY_RUN, RUN = "dry run", "run"  # of many logs on Spark; LOCAL_COLD is the run in processes
SIDES = (KAFKA, COPY, COLD, WARM, LOCAL_COLD, LOCAL)  # in the order of a turn
WARM_SIDES = (KAFKA, WARM, LOCAL)

MAIN, SMALL = "100b-none", "small"
PLAN, RECOVER, OPEN, SWAP, MANY_LOGS = "plan", "recover", "open", "swap", "many-logs"
CONFIGS, EXPLAIN = "configs", "explain"  # measured with PLAN
TABLES, ENGINE, INSPECT = "tables", "engine", "inspect"
EXECUTORS = "executors"
EXECUTOR_COUNTS = (1, 2, 4)  # of one core each
TXN, MANY_TXN = "100b-txn", "100k-txn"
GROWTH_SHORT, GROWTH_LONG = "100b-0.8gb", "100b-4gb"
FEW_SEGMENTS, MANY_SEGMENTS = "7-segments", "7000-segments"
FEWER_KEYS, MANY_KEYS = "20m-keys", "60m-keys"
QUICK_SHARE = 200  # quick logs have one batch of so many,
QUICK_BATCHES = 300  # but not fewer than this


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    batches: int
    records_a_batch: int
    keys: int
    value_bytes: int
    codec: str = "none"
    entropy: float = 1.0  # share of a value's bytes that are random; the rest compresses away
    segment_bytes: int = 128 * 1024 * 1024
    sides: tuple[str, ...] = SIDES
    producers: int = 0  # transactional ones, which take turns
    batches_a_transaction: int = 1
    aborted: float = 0.0  # share of the transactions
    open_transactions: int = 0  # in the active segment
    magic: int = 2
    many_rounds: bool = False  # of Kafka's cleaner: they take too long to be measured unasked

    def script(self) -> str:
        """A line of JSON for each operation: the log, and one record in the active segment."""
        fill = {
            "batches": self.batches,
            "records": self.records_a_batch,
            "keys": self.keys,
            "value_bytes": self.value_bytes,
            "codec": self.codec,
            "entropy": self.entropy,
            "tombstones": 0.05,
            "skew": 1,
            "seed": 3,
        }
        if self.magic != 2:
            fill["magic"] = self.magic
        if self.producers:
            fill["producers"] = self.producers
            fill["txn_batches"] = self.batches_a_transaction
            fill["aborted"] = self.aborted
        operations = [
            {"op": "config", "segment.bytes": str(self.segment_bytes)},
            {"op": "fill", **fill},
            {"op": "roll"},
            {"op": "append", "records": [{"k": "a", "v": "z"}]},
        ]
        if self.open_transactions:
            left = {"batches": self.open_transactions, "producers": self.open_transactions}
            operations.append({"op": "fill", **fill, **left, "txn_batches": 2})
        return "".join(f"{json.dumps(operation)}\n" for operation in operations)

    def key(self) -> str:
        """Names the log among those kept from earlier runs: another script is another log."""
        return f"{self.name}-{sha256(self.script().encode()).hexdigest()[:12]}"

    def quick(self) -> "Workload":
        """The same shape, a few megabytes at most; a log that is as short already stays."""
        batches = max(self.batches // QUICK_SHARE, min(self.batches, QUICK_BATCHES))
        return replace(
            self,
            batches=batches,
            keys=self.keys * batches // self.batches,
            segment_bytes=max(
                min(self.segment_bytes, 1024 * 1024), self.segment_bytes // QUICK_SHARE
            ),
        )


@dataclass(frozen=True, slots=True)
class Fleet:
    """A log directory of many logs that hold nothing, their sizes made by sparse files."""

    partitions: int = 10_000
    segments_a_partition: int = 6
    partitions_a_topic: int = 100

    @property
    def segments(self) -> int:
        return self.partitions * self.segments_a_partition

    def key(self, use: str) -> str:
        return f"{use}-{self.partitions}x{self.segments_a_partition}"

    def quick(self) -> "Fleet":
        return replace(self, partitions=max(1, self.partitions // QUICK_SHARE))


@dataclass(frozen=True, slots=True)
class ManyLogs:
    """A log directory of small logs, all alike."""

    logs: int = 2_000
    log: Workload = Workload("75kb", 6, 100, 120, 100)  # of 75 KB

    def key(self) -> str:
        return f"{MANY_LOGS}-{self.logs}-{self.log.key()}"

    def quick(self) -> "ManyLogs":
        return replace(self, logs=self.logs // QUICK_SHARE)


@dataclass(frozen=True, slots=True)
class SwapShape:
    """A log of small segments, each group of which is swapped in."""

    segments: int
    segments_a_group: int


def swap_shapes(quick: bool) -> list[SwapShape]:
    """The shortest and the longest are held against each other."""
    lengths = (20, 40) if quick else (1_000, 4_000, 16_000)
    return [SwapShape(segments, a_group) for a_group in (1, 10) for segments in lengths]


WORKLOADS: tuple[Workload, ...] = (
    Workload(
        SMALL,
        300,
        100,
        6_000,
        100,
        segment_bytes=1024 * 1024,
        sides=(KAFKA, COPY, COLD, LOCAL_COLD),
    ),
    Workload(MAIN, 60_000, 110, 1_500_000, 100),
    Workload("100b-lz4", 60_000, 110, 1_500_000, 100, "lz4", entropy=0.5),
    Workload("100b-zstd", 60_000, 110, 1_500_000, 100, "zstd", entropy=0.5),
    Workload("1000b-none", 50_000, 16, 200_000, 1000),
    Workload("1000b-lz4", 50_000, 16, 200_000, 1000, "lz4", entropy=0.25),
    Workload("1000b-zstd", 50_000, 16, 200_000, 1000, "zstd", entropy=0.25),
    Workload(TXN, 60_000, 110, 1_500_000, 100, producers=20, batches_a_transaction=5, aborted=0.2),
    Workload(
        MANY_TXN,
        *(100_000, 5, 200_000, 100),
        producers=1000,
        aborted=0.2,
        open_transactions=1000,
        sides=WARM_SIDES,
    ),
    Workload("100b-v1", 10_000, 110, 250_000, 100, magic=1, sides=WARM_SIDES),
    Workload("100b-v1-gzip", 10_000, 110, 250_000, 100, "gzip", 0.5, magic=1, sides=WARM_SIDES),
    Workload(GROWTH_SHORT, 63_000, 110, 900_000, 100),
    Workload(GROWTH_LONG, 315_000, 110, 4_500_000, 100),
    Workload(
        *(FEW_SEGMENTS, 315_000, 110, 4_500_000, 100),
        segment_bytes=600_000_000,
        sides=WARM_SIDES,
    ),
    Workload(
        *(MANY_SEGMENTS, 315_000, 110, 4_500_000, 100),
        segment_bytes=600_000,
        sides=WARM_SIDES,
    ),
    Workload(*(FEWER_KEYS, 300_000, 110, 20_000_000, 100), sides=WARM_SIDES, many_rounds=True),
    Workload(
        *(MANY_KEYS, 900_000, 110, 60_000_000, 100),
        sides=(KAFKA, COLD, WARM, LOCAL_COLD, LOCAL),
        many_rounds=True,
    ),
)
NAMES = (
    *(workload.name for workload in WORKLOADS),
    PLAN,
    RECOVER,
    OPEN,
    SWAP,
    MANY_LOGS,
    TABLES,
    ENGINE,
    INSPECT,
    EXECUTORS,
)


def choose(names: Sequence[str] | None, quick: bool) -> list[Workload]:
    """The logs of these names, in the order of the list above; None: all that take no hours."""
    wanted = [w.name for w in WORKLOADS if quick or not w.many_rounds] if names is None else names
    chosen = [w for w in WORKLOADS if w.name in wanted]
    return [workload.quick() for workload in chosen] if quick else chosen
