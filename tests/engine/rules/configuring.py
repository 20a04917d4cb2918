"""The configuration of a topic, as far as its log has need of it: spec L-29."""

from collections.abc import Iterator

from tests.engine.rules.case import NOW_MS, Case, Line, Seen
from tests.engine.rules.steps import (
    FILES,
    OPEN,
    ROLL,
    config,
    fails,
    ok,
    one,
    record,
    refused,
    state,
)

REFUSED = (
    ("flush.messages", "0"),
    ("flush.ms", "-1"),
    ("message.timestamp.before.max.ms", "-1"),
    ("message.timestamp.after.max.ms", "-1"),
    ("retention.ms", "-2"),
    ("segment.ms", "0"),
    ("segment.jitter.ms", "-1"),
    ("segment.index.bytes", "3"),
    ("index.interval.bytes", "-1"),
    ("max.message.bytes", "-1"),
    ("file.delete.delay.ms", "-1"),
    ("max.compaction.lag.ms", "0"),
    ("min.compaction.lag.ms", "-1"),
    ("min.cleanable.dirty.ratio", "1.1"),
    ("cleanup.policy", "keep"),
    ("cleanup.policy", "COMPACT"),
    ("cleanup.policy", "compact,Delete"),
    ("cleanup.policy", "compact,"),
    ("compression.type", "bzip2"),
    ("compression.gzip.level", "10"),
    ("compression.lz4.level", "0"),
    ("compression.zstd.level", "23"),
    ("message.timestamp.type", "createtime"),
    ("preallocate", "yes"),
    ("segment.ms", "1e3"),
)
TAKEN = (
    ("flush.ms", "0"),
    ("retention.ms", "0"),
    ("retention.ms", "-1"),
    ("retention.bytes", "-5"),
    ("cleanup.policy", "compact, delete"),
    ("cleanup.policy", "compact,compact"),
    ("cleanup.policy", ""),
    ("preallocate", "TRUE"),
    ("segment.jitter.ms", "0"),
    ("segment.index.bytes", "4"),
)


def settings() -> Iterator[Line | Seen]:
    for name, value in REFUSED:
        yield {"op": "config", name: value}
        yield fails("ConfigException")
    for name, value in TAKEN:
        yield {"op": "config", name: value}
        yield ok()


CASES = [
    Case("L-29.1, L-29.3, L-29.4", "values at and past their bounds", *settings()),
    Case(
        "L-29.4",
        "of a line of settings all are taken, or none",
        {"op": "config", "cleanup.policy": "compact", "segment.ms": "0"},
        fails("ConfigException"),
        OPEN,
        {"op": "append", "records": [record(key=None)]},
        ok(),
        config(cleanup_policy="compact"),
        {"op": "append", "records": [record(key=None)]},
        refused("InvalidRecordException", 0),
    ),
    Case(
        "L-29.5",
        "the age of a compacted topic's segments is bounded twice",
        config(cleanup_policy="compact", segment_ms=100, max_compaction_lag_ms=1000),
        OPEN,
        one(NOW_MS),
        one(NOW_MS + 100),
        state(bases=[0]),
        one(NOW_MS + 101),
        state(bases=[0, 2]),
        config(segment_ms=1000, max_compaction_lag_ms=10),
        one(NOW_MS + 112),
        state(bases=[0, 2, 3]),
    ),
    Case(
        "L-29.6",
        "a preallocated segment has its length at once, and another one keeps the old length",
        config(preallocate=True, segment_bytes=500),
        OPEN,
        one(),
        FILES,
        config(segment_bytes=300),
        one(),
        FILES,
        ROLL,
        FILES,
        state(sizes=[140, 0]),
    ),
    Case(
        "L-28.5",
        "what was taken when a segment was opened stays with it",
        config(index_interval_bytes=1000, segment_index_bytes=80),
        OPEN,
        one(),
        config(index_interval_bytes=0, segment_index_bytes=24),
        one(),
        one(),
        state(indexes=[0], bases=[0]),
        ROLL,
        one(),
        one(NOW_MS + 1),
        state(indexes=[0, 8]),
        one(NOW_MS + 2),
        state(bases=[0, 3, 5]),
    ),
]
