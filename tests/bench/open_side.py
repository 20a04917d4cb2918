"""A log manager that opens the logs of a large log directory after a clean shutdown.

A process of its own for each turn, which tells what `start` took and closes all logs again. The
first one is not counted: it leaves the directory as a clean shutdown does.
"""

import json
import resource
import sys
import time
from pathlib import Path

from compactor import LogManager, ManagerOptions
from storage.file_names import LOG, file_name
from storage.log.manager.manager_options import BY_HAND
from tests.bench import measured
from tests.bench.errors import BenchError
from tests.bench.plan_side import OFFSETS_A_SEGMENT, write_fleet
from tests.bench.process_tree import KIB
from tests.bench.results import FleetResult, Sample
from tests.bench.scratch import Scratch, kept
from tests.bench.workloads import OPEN, Fleet
from tests.support.reference_batch import ReferenceBatch, encode


def measure(scratch: Scratch, fleet: Fleet, repetitions: int) -> FleetResult:
    """Open so many times; BenchError unless every log is open each time."""
    log_dir = kept(scratch, fleet.key(OPEN), lambda target: write_logs(target, fleet))
    samples, peaks = [], []
    for turn in range(repetitions + 1):
        program = [sys.executable, "-m", "tests.bench.open_side", str(log_dir)]
        told = json.loads(measured.run_to_success(program).stdout)
        if told["logs"] != fleet.partitions:
            raise BenchError(f"{told['logs']} logs are open, not all of {fleet.partitions}")
        if turn:
            samples.append(Sample(told["seconds"], told["cpu_seconds"]))
            peaks.append(told["peak_rss_bytes"])
    return FleetResult(fleet.partitions, fleet.segments, samples, max(peaks))


def write_logs(log_dir: Path, fleet: Fleet) -> None:
    """Write logs as for `plan`, each with a batch in its active segment."""
    write_fleet(log_dir, fleet)
    active = (fleet.segments_a_partition - 1) * OFFSETS_A_SEGMENT
    batch = encode(ReferenceBatch(active, active, 0, 0, 0, 0))
    for partition in log_dir.iterdir():
        if partition.is_dir():
            (partition / file_name(active, LOG)).write_bytes(batch)


def open_all(log_dir: str) -> dict[str, float]:
    """What it took to open all logs; they are closed again."""
    manager = LogManager([log_dir], ManagerOptions(intervals=BY_HAND))
    began, cpu_began = time.monotonic(), time.process_time()
    with manager:
        seconds, cpu_seconds = time.monotonic() - began, time.process_time() - cpu_began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB
        return {
            "logs": len(manager.logs),
            "seconds": seconds,
            "cpu_seconds": cpu_seconds,
            "peak_rss_bytes": peak,
        }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(open_all(sys.argv[1])))
