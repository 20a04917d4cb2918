"""`compactor plan` over a large log directory of sparse files, in a fresh process each time."""

import json
import os
from pathlib import Path
from uuid import UUID

from storage.file_names import INDEX, LOG, SNAPSHOT, TIME_INDEX, file_name
from storage.formats import clean_shutdown, meta_properties, partition_metadata, producer_snapshot
from storage.formats.meta_properties import MetaProperties
from storage.formats.partition_metadata import PARTITION_METADATA, PartitionMetadata
from tests.bench import cold_side, measured
from tests.bench.errors import BenchError
from tests.bench.results import FleetResult
from tests.bench.scratch import Scratch, kept
from tests.bench.workloads import PLAN, Fleet

SEGMENT_BYTES = 128 * 1024 * 1024
OFFSETS_A_SEGMENT = 1_000_000
INDEX_BYTES = 8 * (SEGMENT_BYTES // 4096 // 4)  # batches of 16 KB, each in the index
TIME_INDEX_BYTES = 12 * (INDEX_BYTES // 8)


def measure(scratch: Scratch, fleet: Fleet, repetitions: int) -> FleetResult:
    """Plan so many times; BenchError unless every log is found eligible each time."""
    log_dir = kept(scratch, fleet.key(PLAN), lambda target: write_fleet(target, fleet))
    runs = []
    for _ in range(repetitions):
        done = measured.run_to_success(cold_side.command("plan", log_dir))
        totals = json.loads(done.stdout.splitlines()[-1])["totals"]
        if totals["to_clean"] != fleet.partitions:
            raise BenchError(f"plan takes {totals}, not all of {fleet.partitions} logs")
        runs.append(done)
    peak = max(done.peak_rss_bytes for done in runs)
    return FleetResult(fleet.partitions, fleet.segments, [done.sample for done in runs], peak)


def write_fleet(log_dir: Path, fleet: Fleet) -> None:
    """Write logs of dirty segments, with an empty active one, as after a roll and a clean stop."""
    for number in range(fleet.partitions):
        topic, partition = divmod(number, fleet.partitions_a_topic)
        _write_partition(log_dir / f"topic-{topic:03}-{partition}", topic, fleet)
    properties = MetaProperties(version=1, cluster_id="bench", node_id=1, directory_id=None)
    meta_properties.write(str(log_dir), properties)
    clean_shutdown.write(str(log_dir))


def _write_partition(directory: Path, topic: int, fleet: Fleet) -> None:
    directory.mkdir(parents=True)
    metadata = partition_metadata.encode(PartitionMetadata(0, UUID(int=topic + 1)))
    (directory / PARTITION_METADATA).write_bytes(metadata)
    *dirty, active = range(0, fleet.segments_a_partition * OFFSETS_A_SEGMENT, OFFSETS_A_SEGMENT)
    sizes = {LOG: SEGMENT_BYTES, INDEX: INDEX_BYTES, TIME_INDEX: TIME_INDEX_BYTES}
    for base_offset in dirty:
        for suffix, size_bytes in sizes.items():
            _write_sparse(directory / file_name(base_offset, suffix), size_bytes)
    for suffix in sizes:
        _write_sparse(directory / file_name(active, suffix), 0)
    (directory / file_name(active, SNAPSHOT)).write_bytes(producer_snapshot.encode([]))


def _write_sparse(path: Path, size_bytes: int) -> None:
    with path.open("wb") as out:
        os.truncate(out.fileno(), size_bytes)
