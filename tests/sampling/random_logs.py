"""Random logs, of kinds that topics have: which keys follow one another, sizes, batches, codecs.

Nothing here knows how a sample is taken, or what is made of it. Most are appended from columns, and
those with transactions batch by batch, all by the storage engine.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from compactor import Batching, Log, LogOptions, api, append_table
from compactor.api import Rules, RunOptions
from storage.codecs.compression import Codec
from storage.formats import clean_shutdown
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from storage.log.log_config import LogConfig
from storage.log.producer_state_entry import AppendOrigin
from storage.log.scheduler import ManualScheduler
from storage.log.validation import AppendRequest

NOW_MS = 1_700_000_000_000
TOPIC = "sampled"
SETTINGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
CHUNK = 100_000
CODECS = (Codec.NONE, Codec.NONE, Codec.LZ4, Codec.ZSTD, Codec.SNAPPY, Codec.GZIP)
ABORT, COMMIT = b"\0\0\0\0", b"\0\0\0\1"

ENDING = AppendRequest(origin=AppendOrigin.COORDINATOR, transaction_version=1)

Int64Array = NDArray[np.int64]
Chance = np.random.Generator
Keys = Callable[[Chance, int], Int64Array]


def _uniform(chance: Chance, count: int) -> Int64Array:
    """All keys alike, from a hundredth as many as there are records up to four times as many."""
    return chance.integers(0, int(count * 10 ** chance.uniform(-2, 0.6)), count)


def _few(chance: Chance, count: int) -> Int64Array:
    return chance.integers(0, int(10 ** chance.uniform(0, 3)), count)


def _zipf(chance: Chance, count: int) -> Int64Array:
    """Few keys are written often, and many seldom; there is no end of them."""
    return np.minimum(chance.zipf(chance.uniform(1.1, 1.8), count), 2**62)


def _lognormal(chance: Chance, count: int) -> Int64Array:
    """Users: how often each writes differs by orders of magnitude."""
    keys = int(count * 10 ** chance.uniform(-1.5, 0))
    weights = chance.lognormal(0, chance.uniform(0.3, 2), keys)
    return chance.choice(keys, count, p=weights / weights.sum())


def _in_turn(chance: Chance, count: int) -> Int64Array:
    """A table that is written from its first row to its last again and again."""
    return np.arange(count) % int(count / chance.uniform(1.2, 20))


def _once(chance: Chance, count: int) -> Int64Array:
    return chance.permutation(count)


def _growing(chance: Chance, count: int) -> Int64Array:
    """New keys come with time, and any old one is written again."""
    known = 1 + np.arange(count) * 10 ** chance.uniform(-1.5, 0)
    return (chance.random(count) * known).astype(np.int64)


def _window(chance: Chance, count: int) -> Int64Array:
    """Orders: each key lives for some time, and is never written after that."""
    rate, life = 10 ** chance.uniform(-1.2, -0.1), 10 ** chance.uniform(-2.5, -0.5)
    return ((np.arange(count) + chance.exponential(life * count, count)) * rate).astype(np.int64)


def _soon_again(chance: Chance, count: int) -> Int64Array:
    """A key may come again among the next few records, and hardly later."""
    share, distance = chance.uniform(0.1, 0.9), int(10 ** chance.uniform(0, 2.5))
    keys = chance.integers(0, 4 * count, count)
    repeated = np.flatnonzero(chance.random(count) < share)
    steps = chance.integers(1, distance + 1, len(repeated))
    for at, step in zip(repeated.tolist(), steps.tolist(), strict=True):
        keys[at] = keys[max(0, at - step)]
    return keys


def _bursts(chance: Chance, count: int) -> Int64Array:
    """Runs of one key, of keys that come back."""
    lengths = 1 + chance.poisson(chance.uniform(0.5, 20), count)
    keys = chance.integers(0, max(2, int(count * 10 ** chance.uniform(-2, 0))), count)
    return np.repeat(keys, lengths)[:count]


def _hot_and_cold(chance: Chance, count: int) -> Int64Array:
    """A few keys have a share of the records, and most others are written once."""
    hot = chance.random(count) < chance.uniform(0.2, 0.95)
    few = chance.integers(0, int(10 ** chance.uniform(1, 4)), count)
    return np.where(hot, few, 10**9 + np.arange(count))


def _by_phases(chance: Chance, count: int) -> Int64Array:
    """One kind of traffic in the first part, another one later."""
    first = int(count * chance.uniform(0.2, 0.8))
    kinds = list(KINDS.values())
    parts = [
        kinds[int(chance.integers(0, len(kinds)))](chance, size) for size in (first, count - first)
    ]
    return np.concatenate(parts)


KINDS: dict[str, Keys] = {
    "uniform": _uniform,
    "few": _few,
    "zipf": _zipf,
    "lognormal": _lognormal,
    "in turn": _in_turn,
    "once": _once,
    "growing": _growing,
    "window": _window,
    "soon again": _soon_again,
    "bursts": _bursts,
    "hot and cold": _hot_and_cold,
}
ALL_KINDS = KINDS | {"by phases": _by_phases}


class RandomLog(NamedTuple):
    """A log directory with one log, and what it is."""

    log_dir: Path
    kind: str
    rules: Rules


class _Sizes:
    """Values of one length, of lengths by chance, or of lengths that go with the key."""

    def __init__(self, chance: Chance) -> None:
        self.mean = int(10 ** chance.uniform(1.3, 3))
        self._way = int(chance.integers(0, 4))
        self._tombstones = float(chance.choice((0, 0, 0.02, 0.3)))
        self._random_share = chance.uniform(0, 1)

    def lengths(self, chance: Chance, keys: Int64Array) -> Int64Array:
        """-1 where a record is a tombstone."""
        spread = (
            np.full(len(keys), self.mean),
            chance.integers(0, 2 * self.mean, len(keys)),
            np.minimum(chance.lognormal(np.log(self.mean) - 0.5, 1, len(keys)), 20_000),
            self.mean // 2 + keys * 7919 % self.mean,
        )[self._way]
        gone = chance.random(len(keys)) < self._tombstones
        lengths: Int64Array = np.where(gone, -1, spread.astype(np.int64))
        return lengths

    def values(self, chance: Chance, lengths: Int64Array) -> list[bytes | None]:
        """Partly by chance, and the rest compresses well."""
        source = chance.bytes(30_000)
        starts = chance.integers(0, 9_000, len(lengths))
        fresh = (lengths * self._random_share).astype(np.int64)
        return [
            None if n < 0 else source[at : at + own] + b"v" * (n - own)
            for n, at, own in zip(lengths.tolist(), starts.tolist(), fresh.tolist(), strict=True)
        ]


def random_log(root: Path, seed: int, log_bytes: int) -> RandomLog:
    """Write a log of about so many bytes, not compressed, below the active segment."""
    root.mkdir()
    chance = np.random.default_rng(seed)
    kind = list(ALL_KINDS)[seed % len(ALL_KINDS)]
    sizes = _Sizes(chance)
    in_transactions, cleaned = chance.random() < 0.12, chance.random() < 0.25
    count = min(int(log_bytes / (sizes.mean + 24)), 100_000 if in_transactions else 2**31)
    keys = ALL_KINDS[kind](chance, count)
    retention_ms = str(chance.choice((0, 86_400_000)))
    rules = Rules(
        settings=SETTINGS | {"delete.retention.ms": retention_ms},
        include=TOPIC,
        as_of=NOW_MS,
        any_clock=True,
        assume_fully_replicated=True,
    )
    config = LogConfig(segment_bytes=max(1 << 20, log_bytes // int(chance.integers(1, 9))))
    options = LogOptions(
        clock=lambda: NOW_MS, scheduler=ManualScheduler(lambda: NOW_MS), config=config
    )
    append = _append_transactions if in_transactions else _append_columns
    parts = np.split(keys, [int(count * chance.uniform(0.2, 0.9))]) if cleaned else [keys]
    for number, part in enumerate(parts):
        with Log.open(str(root / f"{TOPIC}-0"), options) as log:
            append(log, chance, part, sizes)
            log.roll()
            log.append_as_leader(encode_batch([Record(0, NOW_MS, b"last", b"", ())]))
        clean_shutdown.write(str(root))
        if number + 1 < len(parts):
            api.run([str(root)], rules, RunOptions(in_process=True, drop_null_keys=True))
    name = kind + ", transactions" * in_transactions + ", cleaned before" * cleaned
    return RandomLog(root, name, rules)


def _append_columns(log: Log, chance: Chance, keys: Int64Array, sizes: _Sizes) -> None:
    codec = CODECS[int(chance.integers(0, len(CODECS)))]
    batch_bytes = int(2 ** chance.uniform(7, 17))
    is_mixed = chance.random() < 0.3
    for start in range(0, len(keys), CHUNK):
        own = keys[start : start + CHUNK]
        lengths = sizes.lengths(chance, own)
        columns = {"key": _texts(own), "value": sizes.values(chance, lengths)}
        if is_mixed:
            codec = CODECS[int(chance.integers(0, len(CODECS)))]
            batch_bytes = int(2 ** chance.uniform(7, 17))
        table = pa.table({name: pa.array(cells, pa.binary()) for name, cells in columns.items()})
        append_table(log, table, Batching(codec=codec, batch_bytes=batch_bytes))


def _texts(keys: Int64Array) -> list[bytes]:
    return [b"key-%d" % key for key in keys.tolist()]


def _append_transactions(log: Log, chance: Chance, keys: Int64Array, sizes: _Sizes) -> None:
    """Of several producers, one transaction after another; a share is aborted."""
    aborted, in_batch = chance.uniform(0, 0.5), int(chance.integers(1, 60))
    sequences = dict.fromkeys(chance.integers(1, 2**40, 5).tolist(), 0)
    at = 0
    while at < len(keys):
        producer = int(chance.choice(list(sequences)))
        for _ in range(int(chance.integers(1, 8))):
            own = keys[at : at + in_batch]
            if not len(own):
                break
            values = sizes.values(chance, sizes.lengths(chance, own))
            pairs = zip(_texts(own), values, strict=True)
            records = [Record(i, NOW_MS, key, value, ()) for i, (key, value) in enumerate(pairs)]
            sent = BatchOptions(
                producer_id=producer,
                producer_epoch=0,
                is_transactional=True,
                base_sequence=sequences[producer],
            )
            log.append_as_leader(encode_batch(records, Codec.NONE, sent))
            sequences[producer] += len(records)
            at += len(own)
        key = ABORT if chance.random() < aborted else COMMIT
        ending = replace(sent, base_sequence=-1, is_control=True)
        data = encode_batch([Record(0, NOW_MS, key, b"\0" * 6, ())], Codec.NONE, ending)
        log.append_as_leader(data, ENDING)
