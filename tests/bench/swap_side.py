"""The swap of one log by itself, in this process: what a group costs where there are many of them.

Each segment holds one batch; what is to come in the place of each group is staged before the clock
starts. Everything else of a round is left out.
"""

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import xxhash

from cleaner_jobs.messages import LogPlan
from compactor.cleaning.stage_values import FinishedGroup
from compactor.cleaning.swapper import GroupSwapper
from compactor.planning.round_plan import plan_round
from compactor.settings.config import load_config
from storage.file_names import INDEX, LOG, TIME_INDEX, file_name
from storage.formats import clean_shutdown
from tests.bench.errors import BenchError
from tests.bench.results import Sample, SwapResult
from tests.bench.scratch import Scratch, settle
from tests.bench.workloads import NOW_MS, SwapShape
from tests.support.local_round import NoProgress
from tests.support.made_values import rewritten
from tests.support.reference_batch import ReferenceBatch, ReferenceRecord, encode

OFFSETS_A_SEGMENT = 10


def measure(scratch: Scratch, shapes: Sequence[SwapShape], repetitions: int) -> list[SwapResult]:
    """Swap each of these logs so many times, in turn."""
    results = [SwapResult(shape.segments, shape.segments_a_group, []) for shape in shapes]
    for _ in range(repetitions):
        for shape, result in zip(shapes, results, strict=True):
            result.samples.append(_swap(scratch.copies / "log", shape))
    return results


def _swap(log_dir: Path, shape: SwapShape) -> Sample:
    plan, groups = write(log_dir, shape)
    settle()
    began, used = time.monotonic(), _cpu_seconds()
    with GroupSwapper("bench", NoProgress()) as swapper:
        for group in groups:
            swapper.give(plan, group)
        swapped = swapper.finish()[plan.log_id]
    sample = Sample(time.monotonic() - began, _cpu_seconds() - used)
    if swapped.problem is not None or swapped.groups != len(groups):
        raise BenchError(f"{swapped.groups} of {len(groups)} groups: {swapped.problem}")
    shutil.rmtree(log_dir)
    return sample


def write(log_dir: Path, shape: SwapShape) -> tuple[LogPlan, list[FinishedGroup]]:
    """A log with an active segment, its plan, and a staged segment for each group."""
    partition = log_dir / "t-0"
    partition.mkdir(parents=True)
    clean_shutdown.write(str(log_dir))
    for base_offset in range(0, (shape.segments + 1) * OFFSETS_A_SEGMENT, OFFSETS_A_SEGMENT):
        _write_segment(partition, base_offset, "")
    size_bytes = os.path.getsize(partition / file_name(0, LOG))
    settings = {
        "cleanup.policy": "compact",
        "segment.bytes": str(shape.segments_a_group * size_bytes),
    }
    (plan,) = plan_round([str(log_dir)], load_config(settings=settings), NOW_MS).logs
    groups = [
        FinishedGroup(
            number, (), [rewritten(group=number, **_staged(partition, group.base_offset))]
        )
        for number, group in enumerate(plan.groups)
    ]
    if len(groups) != -(-shape.segments // shape.segments_a_group):
        raise BenchError(f"{len(groups)} groups of {shape.segments} segments")
    return plan, groups


def _staged(partition: Path, base_offset: int) -> dict[str, object]:
    paths = _write_segment(partition, base_offset, ".compactor-bench-0")
    log, *indexes = (path.read_bytes() for path in paths)
    names = ("log_file", "index_file", "time_index_file")
    return {
        **dict(zip(names, map(str, paths), strict=True)),
        "log_bytes": len(log),
        "log_checksum": xxhash.xxh3_64_intdigest(log),
        "index_checksums": tuple(map(xxhash.xxh3_64_intdigest, indexes)),
    }


def _write_segment(partition: Path, base_offset: int, suffix: str) -> list[Path]:
    record = ReferenceRecord(base_offset, NOW_MS, b"key", b"value")
    last_offset = base_offset + OFFSETS_A_SEGMENT - 1
    batch = ReferenceBatch(base_offset, last_offset, 0, 0, NOW_MS, NOW_MS, records=(record,))
    files = {LOG: encode(batch), INDEX: b"", TIME_INDEX: b""}
    paths = [partition / (file_name(base_offset, kind) + suffix) for kind in files]
    for path, data in zip(paths, files.values(), strict=True):
        path.write_bytes(data)
    return paths


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system
