"""Estimate what would go of a log: by a dry round of all of it, or from blocks if it is larger.

How many records would go of the whole log is computed from the blocks by `block_estimate`. How much
smaller its batches get is tried with some of them (`Shrinking`): what is left of a compressed batch
is compressed again, and shrinks by less than what went from it. Records whose key comes again soon
are as a rule also alike, and take next to no room.
"""

import os
import secrets
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.offset_map import ENTRY_WORDS
from cleaner_jobs.messages import LogPlan, Part, RoundSettings, Stretch, value_of
from cleaner_jobs.tasks.mapping import MapContext
from cleaner_jobs.tasks.scan import scan_stretches
from compactor.cleaning.cleaner_manager import RunSettings, run_round
from compactor.jobs.log_indexes import index_positions, read_indexes, save_expected
from compactor.jobs.work_dir import open_work_dir
from compactor.outcome.round_report import LogStatus
from compactor.planning import layout
from compactor.planning.block_estimate import Blocks, clumping, estimate_of, unevenness
from compactor.planning.expected import Estimate, SampledLog, no_estimate
from compactor.planning.round_plan import RoundPlan
from compactor.settings.rules import RunOptions
from storage.codecs.compression import Codec, compress
from storage.errors import CorruptFileError
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import record as record_format
from storage.formats.batch_header import BATCH_HEADER_BYTES, MAGIC
from storage.formats.batch_windows import Buffers
from storage.formats.record import Record
from storage.formats.record_batch import BatchHeader, decode_records
from storage.log.segment_reader import read_batches

SAMPLE_BYTES = 256 << 20
BLOCK_BYTES = 1 << 20
FEWEST_BLOCKS = 16
DRAWS = 64  # of which the fairest is taken
MOST_SEEN = 12  # a key in more blocks than that has no like that is in none
MOST_RECORDS = 100_000
FEWEST_BATCHES = 64  # if there are as many stretches
UInt64Array = NDArray[np.uint64]


class NoProgress:
    """For a look that nobody waits long for."""

    def stage(self, name: str, total: int) -> None: ...
    def advance(self, done: int) -> None: ...
    def swapped(self, groups: int) -> None: ...
    def message(self, text: str, log: str | None = None) -> None: ...


class _Tried:
    """A batch: what it takes, and what is left for certain: of each key the last record."""

    def __init__(self, header: BatchHeader, records: Sequence[Record]) -> None:
        self.header, self.bytes, self.records = header, header.size_bytes, len(records)
        self.left = list({record.key: record for record in reversed(records)}.values())[::-1]

    def bytes_of(self, records: Sequence[Record]) -> int:
        if not records:
            return 0
        base, base_ms = self.header.base_offset, self.header.base_timestamp
        payload = b"".join(record_format.encode(record, base, base_ms) for record in records)
        return BATCH_HEADER_BYTES + len(compress(Codec(self.header.codec), payload))


HERE = MapContext(None, LOCAL)


def sample_log(value: Any, context: MapContext) -> Estimate:
    """Sample one log, in a task: a `SampledLog`, as JSON has it."""
    log, as_of_ms, sample_bytes = value_of(SampledLog, value)
    alone = RoundPlan(
        as_of_ms=as_of_ms,
        logs=(log,),
        not_cleaned=(),
        facts=(),
        checkpoint_repairs={},
        log_dirs=(),
    )
    return sample(alone, log, sample_bytes, context)


def sample(
    plan: RoundPlan, log: LogPlan, sample_bytes: int = SAMPLE_BYTES, context: MapContext = HERE
) -> Estimate:
    """What would go of a log of the plan, from at most so many bytes of its segments.

    Starts no process: it may be in one of the engine's.
    """
    try:
        if log.log_bytes <= sample_bytes:
            return _whole(plan, log, context)
        return _of_blocks(plan, log, sample_bytes, context)
    except (CorruptFileError, OSError) as error:
        return no_estimate(0, str(error))


class Shrinking:
    """Batches of a log, of format v2, from which records are taken to see what is left."""

    def __init__(self, tried: Sequence[_Tried]) -> None:
        self._tried = tried
        self._bytes = sum(batch.bytes for batch in tried)
        self._records = sum(batch.records for batch in tried)
        self._again = self._records - sum(len(batch.left) for batch in tried)

    def bytes_share(self, records_share: float) -> float | None:
        """Return the share of the bytes that goes with a share of the records.

        Records whose key comes again in their batch go first, then any. None: no batch was tried.
        """
        if not self._records:
            return None
        chance = np.random.default_rng(self._records)
        again = self._again / self._records
        more = (records_share - again) / (1 - again)
        left = sum(
            batch.bytes_of(
                [record for record in batch.left if more <= 0 or chance.random() >= more]
            )
            for batch in self._tried
        )
        gone = max(0.0, 1 - left / self._bytes)
        return gone if more >= 0 else gone * records_share / again


def shrinking_of(stretches: Sequence[Stretch], files: Files) -> Shrinking:
    """Take the first batch of some of the stretches. Raise CorruptFileError and OSError."""
    tried: list[_Tried] = []
    step = max(1, len(stretches) // FEWEST_BATCHES)
    for stretch in stretches[::step]:
        path = stretch.source.path
        batches = read_batches(path, files=files, start=stretch.start)
        for position, header, batch in islice(batches, 1):
            if header.magic == MAGIC and not header.is_control and header.records_count:
                tried.append(_Tried(header, decode_records(batch, header, path, position)))
        if sum(batch.records for batch in tried) > MOST_RECORDS:
            break
    return Shrinking(tried)


def _whole(plan: RoundPlan, log: LogPlan, context: MapContext) -> Estimate:
    alone = replace(plan, logs=(log,), not_cleaned=(), facts=(), inventory=(), retention=())
    options = RunOptions(
        dry_run=True, drop_null_keys=True, in_process=True, work_dir=context.work_dir
    )
    settings = RunSettings(options=options, disk=context.disk)
    [report] = run_round(alone, settings, NoProgress()).logs
    if report.status is not LogStatus.WOULD_CLEAN:
        return no_estimate(log.log_bytes, report.reason or report.status.value)
    gone = 1 - report.bytes_after / report.bytes_before if report.bytes_before else 0.0
    return Estimate(gone, gone, log.log_bytes)


def _of_blocks(plan: RoundPlan, log: LogPlan, sample_bytes: int, context: MapContext) -> Estimate:
    disk = context.disk
    positions = partial(index_positions, files=disk)
    stretches = layout.stretches_of(log, positions, length=BLOCK_BYTES)
    chosen = _drawn(stretches, log, sample_bytes)
    if len(chosen) < FEWEST_BLOCKS:
        return no_estimate(0, "its batches are too large, or its offset indexes too coarse")
    with open_work_dir(context.work_dir, secrets.token_hex(4), disk) as work_dir:
        aborted = save_expected(log, read_indexes(log, disk), work_dir, disk)
        chosen = [stretch._replace(aborted_file=aborted) for stretch in chosen]
        settings = RoundSettings(
            run_id="sample",
            work_dir=work_dir,
            now_ms=plan.as_of_ms,
            hash_key_low=secrets.randbits(64),
            hash_key_high=secrets.randbits(64),
            dry_run=True,
        )
        path = os.path.join(work_dir, "parts", "sample")
        parts = []
        for found in scan_stretches(chosen, settings, path, Buffers(), disk):
            if not isinstance(found, Part):
                return no_estimate(0, str(found[1]))
            parts.append(found)
        keys = [_keys(part, disk) for part in parts]
    blocks = _blocks(log, parts, keys, len(stretches))
    return estimate_of(blocks, shrinking_of(chosen, disk).bytes_share)


def _drawn(stretches: Sequence[Stretch], log: LogPlan, sample_bytes: int) -> list[Stretch]:
    """Blocks by lot, each a part of its own: the same ones for the same log.

    Not evenly over it: keys that come again at some distance would never be seen twice.
    """
    sizes = np.array([stretch.end - stretch.start for stretch in stretches])
    chance = np.random.default_rng(log.end_offset)
    lots = []
    for _ in range(DRAWS):
        order = chance.permutation(len(sizes))
        lots.append(np.sort(order[np.cumsum(sizes[order]) <= sample_bytes]))
    best = min(lots, key=lambda numbers: unevenness(numbers, len(sizes)))
    return [stretches[number]._replace(ends_part=True) for number in best.tolist()]


def _keys(part: Part, files: Files) -> UInt64Array:
    """The first halves of the hashes of the keys in a part, each once."""
    data = files.read_range(part.file, part.block_at, part.entries * ENTRY_WORDS * 8)
    entries = np.frombuffer(data, np.uint64).reshape(-1, ENTRY_WORDS)
    return np.unique(entries[:, 0])


def _blocks(
    log: LogPlan, parts: Sequence[Part], keys: Sequence[UInt64Array], of_blocks: int
) -> Blocks:
    all_keys = np.concatenate(keys)
    _, seen = np.unique(all_keys, return_counts=True)
    blocks = np.repeat(np.arange(len(keys)), [len(of_block) for of_block in keys])
    log_bytes = sum(part.log_bytes for part in parts)
    return Blocks(
        share=log_bytes / log.log_bytes,
        log_bytes=log_bytes,
        batches=sum(part.batches for part in parts),
        records=sum(part.records - part.control_records for part in parts),
        keyless=sum(part.null_keys + part.aborted for part in parts),
        expired=sum(part.expired for part in parts),
        keys=len(seen),
        in_blocks=tuple(np.bincount(seen, minlength=MOST_SEEN + 1)[1 : MOST_SEEN + 1].tolist()),
        drawn=len(parts),
        of_blocks=of_blocks,
        clumped=clumping(blocks, all_keys, len(parts)),
        dearer=_dearer(parts, blocks, all_keys),
    )


def _dearer(parts: Sequence[Part], blocks: NDArray[np.int64], all_keys: UInt64Array) -> float:
    """Return how much larger than an average record those are that go by the sample alone.

    Each record counts as large as the average of its block.

    Args:
        parts: One for each block.
        blocks: The number of the part of each key, rising.
        all_keys: The keys of all parts.
    """
    _, from_end = np.unique(all_keys[::-1], return_index=True)
    kept = np.bincount(blocks[::-1][from_end], minlength=len(parts))
    records = np.array([part.records - part.control_records for part in parts])
    log_bytes = np.array([part.log_bytes for part in parts])
    gone = np.maximum(records - kept, 0)
    if not gone.any():
        return 1.0
    gone_bytes = float((gone * log_bytes / np.maximum(records, 1)).sum())
    return gone_bytes / float(log_bytes.sum()) / (float(gone.sum()) / float(records.sum()))
