"""Kafka's side: its own cleaner in its own process, one thread, a broker's default buffers.

A turn cleans two fresh copies of the log in one process. The first warms Java up and is not
counted, as a broker's cleaner thread has long been warm. A log that takes Kafka many rounds is
cleaned once: minutes of work leave nothing cold. The oracle times the cleaning alone; CPU
seconds are those of its process from one result to the next, with the copying in between.
"""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from tests.bench import measured
from tests.bench.errors import BenchError
from tests.bench.process_tree import KIB, cpu_seconds
from tests.bench.results import ALL, Outcome, Sample
from tests.bench.workloads import NOW_MS, TOPIC_CONFIG, TOPIC_PARTITION
from tests.oracle import kafka


class KafkaTurn(NamedTuple):
    sample: Sample
    outcome: Outcome
    peak_rss_bytes: int


def clean(log_dir: Path, copying: Sample, warms_up: bool = True) -> KafkaTurn:
    """One turn. copying: what `cp -r` of this log takes; its CPU seconds are taken off."""
    copies = 2 if warms_up else 1
    configs = [
        word for name, value in TOPIC_CONFIG.items() for word in ("--config", f"{name}={value}")
    ]
    repeat = ["--repeat", str(copies), "--now", str(NOW_MS)]
    argv = kafka.command("bench", log_dir, TOPIC_PARTITION, *repeat, *configs)
    with tempfile.TemporaryFile() as err:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=err)
        try:
            results = list(_results(process))
            usage = measured.wait(process)
        finally:
            measured.end(process)
        if process.returncode or len(results) != copies:
            raise BenchError(f"oracle bench ended with {process.returncode}: {_said(err)}")
    (result, ended), began = results[-1], results[0][1] if warms_up else 0.0
    used = max(0.0, ended - began - copying.cpu_seconds)
    return KafkaTurn(Sample(result["seconds"], used), outcome(result), usage.ru_maxrss * KIB)


def outcome(result: dict[str, Any]) -> Outcome:
    """A line of `oracle bench`; BenchError where Kafka saw nothing to clean or not all at once."""
    if not result["cleaned"] or result["end_offset"] != result["first_uncleanable_offset"]:
        raise BenchError(f"Kafka did not clean the whole log: {json.dumps(result)}")
    return Outcome(result["bytes_written"], result["messages_read"], result["messages_written"])


def _results(process: "subprocess.Popen[bytes]") -> Iterator[tuple[dict[str, Any], float]]:
    """Each result as it comes, with the CPU seconds of the process until then."""
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            used = cpu_seconds(process.pid)[ALL]
            if line.startswith(b"{"):
                yield json.loads(line), used


def _said(err: IO[bytes]) -> str:
    err.seek(0)
    return err.read().decode("utf-8", "replace")[-2000:].strip()
