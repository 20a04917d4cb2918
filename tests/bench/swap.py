"""The swap of one log by itself, in this process: what a group costs where there are many of them.

Each segment holds one batch; what is to come in the place of each group is staged before the clock
starts. Everything else of a round is left out.
"""

import os
import shutil
from pathlib import Path

import xxhash

from cleaner_jobs.messages import LogPlan, Rewritten
from compactor.cleaning.stage_values import FinishedGroup
from compactor.cleaning.swapper import GroupSwapper, Swapped
from compactor.settings.config import load_config
from storage.file_names import INDEX, LOG, TIME_INDEX, file_name
from storage.formats import clean_shutdown
from tests.bench.results import BenchError, Sample, SwapResult
from tests.bench.scratch import Setup, settle
from tests.bench.timing import timed
from tests.bench.workloads import NOW_MS, SWAP, SwapShape, swap_shapes
from tests.compactor.plan_logs import plan_log_dirs
from tests.support.local_round import NoProgress
from tests.support.made_values import rewritten
from tests.support.reference_batch import ReferenceBatch, ReferenceRecord, encode

OFFSETS_A_SEGMENT = 10


def measure(setup: Setup) -> tuple[SwapResult, ...]:
    """Swap logs of several shapes so many times, in turn."""
    setup.tell(f"{SWAP}: logs of many small segments")
    shapes = swap_shapes(setup.is_quick)
    results = [SwapResult(shape.segments, shape.segments_a_group, []) for shape in shapes]
    for _ in range(setup.repetitions):
        for shape, result in zip(shapes, results, strict=True):
            result.samples.append(_swap(setup.scratch.copies / "log", shape))
    return tuple(results)


def _swap(log_dir: Path, shape: SwapShape) -> Sample:
    plan, groups = write(log_dir, shape)

    def swap() -> Swapped:
        with GroupSwapper("bench", NoProgress()) as swapper:
            for group in groups:
                swapper.give(plan, group)
            return swapper.finish()[plan.log_id]

    settle()
    sample, swapped = timed(swap)
    if swapped.problem is not None or swapped.groups != len(groups):
        raise BenchError(f"{swapped.groups} of {len(groups)} groups: {swapped.problem}")
    shutil.rmtree(log_dir)
    return sample


def write(log_dir: Path, shape: SwapShape) -> tuple[LogPlan, list[FinishedGroup]]:
    """Write a log with an active segment, and a staged segment for each group of its plan."""
    partition = log_dir / "t-0"
    partition.mkdir(parents=True)
    clean_shutdown.write(str(log_dir))
    for base_offset in range(0, (shape.segments + 1) * OFFSETS_A_SEGMENT, OFFSETS_A_SEGMENT):
        _write_segment(partition, base_offset)
    size_bytes = os.path.getsize(partition / file_name(0, LOG))
    segment_bytes = str(shape.segments_a_group * size_bytes)
    config = load_config(settings={"cleanup.policy": "compact", "segment.bytes": segment_bytes})
    (plan,) = plan_log_dirs([str(log_dir)], config, NOW_MS).logs
    groups = [
        FinishedGroup(number, (), [_staged(partition, number, group.base_offset)])
        for number, group in enumerate(plan.groups)
    ]
    if len(groups) != -(-shape.segments // shape.segments_a_group):
        raise BenchError(f"{len(groups)} groups of {shape.segments} segments")
    return plan, groups


def _staged(partition: Path, group: int, base_offset: int) -> Rewritten:
    paths = _write_segment(partition, base_offset, ".compactor-bench-0")
    log, *indexes = (path.read_bytes() for path in paths)
    names = ("log_file", "index_file", "time_index_file")
    return rewritten(
        group=group,
        **dict(zip(names, map(str, paths), strict=True)),
        log_bytes=len(log),
        log_checksum=xxhash.xxh3_64_intdigest(log),
        index_checksums=tuple(map(xxhash.xxh3_64_intdigest, indexes)),
    )


def _write_segment(partition: Path, base_offset: int, suffix: str = "") -> list[Path]:
    record = ReferenceRecord(base_offset, NOW_MS, b"key", b"value")
    last_offset = base_offset + OFFSETS_A_SEGMENT - 1
    batch = ReferenceBatch(base_offset, last_offset, 0, 0, NOW_MS, NOW_MS, records=(record,))
    files = {LOG: encode(batch), INDEX: b"", TIME_INDEX: b""}
    paths = [partition / (file_name(base_offset, kind) + suffix) for kind in files]
    for path, data in zip(paths, files.values(), strict=True):
        path.write_bytes(data)
    return paths
