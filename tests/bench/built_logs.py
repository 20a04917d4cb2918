"""Logs built by the oracle from the scripts of the workloads."""

import shutil
from pathlib import Path

from tests.bench.errors import BenchError
from tests.bench.scratch import Scratch, kept
from tests.bench.workloads import TOPIC_PARTITION, Workload
from tests.oracle import kafka

BYTES_A_RECORD = 24  # beyond its value: key, lengths, deltas, its share of the batch header
LOGS_AT_ONCE = 3  # the log, a copy, and what is written anew of it


def log_dir_of(scratch: Scratch, workload: Workload) -> Path:
    """The log directory of a workload; built in the first run that asks for it."""

    def build(log_dir: Path) -> None:
        _require_space(scratch.root, workload)
        script = log_dir.with_name("script.jsonl")
        script.write_text(workload.script(), "utf-8")
        try:
            kafka.run("build", script, log_dir)
        except kafka.OracleFailedError as error:
            raise BenchError(f"{workload.name}: {error}") from error

    return kept(scratch, workload.key(), build)


def log_bytes(log_dir: Path) -> int:
    """Bytes of all segments, without their indexes."""
    return sum(path.stat().st_size for path in (log_dir / TOPIC_PARTITION).glob("*.log"))


def _require_space(root: Path, workload: Workload) -> None:
    records = workload.batches * workload.records_a_batch
    wanted = records * (workload.value_bytes + BYTES_A_RECORD) * LOGS_AT_ONCE
    free = shutil.disk_usage(root).free
    if free < wanted:
        raise BenchError(
            f"{root}: {workload.name} needs {wanted / 1e9:.1f} GB, {free / 1e9:.1f} GB are free; "
            "--scratch names another place"
        )
