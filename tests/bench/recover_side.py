"""`compactor recover` over a large log directory of which a run was killed, fresh each time.

Every fiftieth partition stands in the middle of a swap, every third one has a file staged.
"""

import json
import os
from pathlib import Path

from storage.file_names import INDEX, LOG, SWAP, TIME_INDEX, file_name
from tests.bench import measured, plan_side
from tests.bench.cold_side import program
from tests.bench.errors import BenchError
from tests.bench.plan_side import OFFSETS_A_SEGMENT
from tests.bench.results import FleetResult
from tests.bench.scratch import Scratch, kept
from tests.bench.workloads import RECOVER, Fleet
from tests.support.reference_batch import ReferenceBatch, encode

SWAPS_EVERY, STAGED_EVERY = 50, 3  # partitions
CUT_SHORT = (0, OFFSETS_A_SEGMENT)  # base offsets of the sources of each swap


def measure(scratch: Scratch, fleet: Fleet, repetitions: int) -> FleetResult:
    """Recover so many times; BenchError unless all that was left is settled each time."""
    key = fleet.key(RECOVER)
    log_dir = kept(scratch, key, lambda target: plan_side.write_fleet(target, fleet))
    runs = []
    for _ in range(repetitions):
        recovered = leave(log_dir)
        done = measured.run_to_success(program("recover", str(log_dir), "--format", "json"))
        totals = json.loads(done.stdout.splitlines()[-1])["totals"]
        if (totals["recovered"], totals["set_aside"]) != (recovered, 0):
            raise BenchError(f"recover tells {totals}, not {recovered} logs recovered")
        runs.append(done)
    peak = max(done.peak_rss_bytes for done in runs)
    return FleetResult(fleet.partitions, fleet.segments, [done.sample for done in runs], peak)


def leave(log_dir: Path) -> int:
    """Leave what a killed run would; in how many partitions."""
    touched = 0
    partitions = sorted(path for path in log_dir.iterdir() if path.is_dir())
    for number, partition in enumerate(partitions):
        if not number % SWAPS_EVERY:
            _cut_a_swap_short(partition)
        if not number % STAGED_EVERY:
            staged = partition / f"{file_name(0, LOG)}.compactor-dead-rewrite-0-1"
            staged.write_bytes(b"half a segment")
        touched += not number % SWAPS_EVERY or not number % STAGED_EVERY
    return touched


def _cut_a_swap_short(partition: Path) -> None:
    """Two sources, which are sparse, and what is to come in their place."""
    sizes = {
        LOG: plan_side.SEGMENT_BYTES,
        INDEX: plan_side.INDEX_BYTES,
        TIME_INDEX: plan_side.TIME_INDEX_BYTES,
    }
    for base_offset in CUT_SHORT:
        for kind, size_bytes in sizes.items():
            with (partition / file_name(base_offset, kind)).open("wb") as out:
                os.truncate(out.fileno(), size_bytes)
    last_offset = CUT_SHORT[-1] + 1
    batch = encode(ReferenceBatch(0, last_offset, 0, 0, 0, 0))
    for kind, data in {LOG: batch, INDEX: b"", TIME_INDEX: b""}.items():
        (partition / (file_name(0, kind) + SWAP)).write_bytes(data)
