"""Logs of 1.5 MB in batches of one codec: as a producer's, much larger than the random ones.

Builds of a codec differ on few batches, and rather on large ones.
"""

import random
from typing import Any

CODECS = ("zstd", "lz4", "gzip", "snappy")
RECORDS_OF_A_KEY = 4
PRODUCERS, TXN_BATCHES = 3, 2
WHOLE = PRODUCERS * TXN_BATCHES  # batches, of which no transaction stays open
SETTINGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"}


def codec_of(seed: int) -> str:
    """Seeds that follow one another take the codecs in turn."""
    return CODECS[seed % len(CODECS)]


def large_script(seed: int, topic: str) -> list[dict[str, Any]]:
    """A log of about 1.5 MB, of which about a third of the records stays: nearly every batch is
    compressed anew."""
    rng = random.Random(seed)
    value_bytes = rng.choice([60, 200, 900])
    per_batch = rng.choice([40, 150, 400])
    records = 1_500_000 // value_bytes
    batches = records // per_batch // WHOLE * WHOLE + WHOLE
    fill: dict[str, Any] = {
        "batches": batches,
        "records": per_batch,
        "keys": max(records // RECORDS_OF_A_KEY, 2),
        "value_bytes": value_bytes,
        "codec": codec_of(seed),
        "tombstones": rng.choice([0, 0.05]),
        "skew": rng.choice([0, 1]),
        "entropy": rng.choice([0.1, 0.4, 0.7]),
        "seed": seed,
    }
    if rng.random() < 0.3:
        fill |= {"producers": PRODUCERS, "txn_batches": TXN_BATCHES, "aborted": 0.2}
    return [
        {"op": "partition", "topic": topic, "partition": 0},
        {"op": "config", **SETTINGS, "segment.bytes": str(rng.choice([400_000, 2_000_000]))},
        {"op": "fill", **fill},
        {"op": "roll"},
        {"op": "append", "records": [{"k": "last", "v": "v"}]},
    ]
