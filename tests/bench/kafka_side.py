"""Kafka's side: its own cleaner in its own process, one thread, a broker's default buffers.

A turn cleans two fresh copies of the log in one process. The first warms Java up and is not
counted, as a broker's cleaner thread has long been warm. A log that takes Kafka many rounds is
cleaned once: minutes of work leave nothing cold. The oracle reads a copy through, then times the
cleaning alone; CPU seconds are those of its process meanwhile.
"""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import IO, Any, NamedTuple

from tests.bench import measured
from tests.bench.errors import BenchError
from tests.bench.process_tree import KIB
from tests.bench.results import Outcome, Sample
from tests.bench.workloads import NOW_MS, TOPIC_CONFIG, TOPIC_PARTITION
from tests.oracle import kafka


class KafkaTurn(NamedTuple):
    sample: Sample
    outcome: Outcome
    peak_rss_bytes: int


def clean(log_dir: Path, warms_up: bool = True) -> KafkaTurn:
    """One turn."""
    copies = 2 if warms_up else 1
    configs = [
        word for name, value in TOPIC_CONFIG.items() for word in ("--config", f"{name}={value}")
    ]
    repeat = ["--repeat", str(copies), "--now", str(NOW_MS)]
    argv = kafka.command("bench", log_dir, TOPIC_PARTITION, *repeat, *configs)
    with tempfile.TemporaryFile() as err:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=err)
        try:
            assert process.stdout is not None
            with process.stdout as lines:
                results = [json.loads(line) for line in lines if line.startswith(b"{")]
            usage = measured.wait(process)
        finally:
            measured.end(process)
        if process.returncode or len(results) != copies:
            raise BenchError(f"oracle bench ended with {process.returncode}: {_said(err)}")
    result = results[-1]
    sample = Sample(result["seconds"], result["cpu_seconds"])
    return KafkaTurn(sample, outcome(result), usage.ru_maxrss * KIB)


def outcome(result: dict[str, Any]) -> Outcome:
    """A line of `oracle bench`; BenchError where Kafka saw nothing to clean or not all at once."""
    if not result["cleaned"] or result["end_offset"] != result["first_uncleanable_offset"]:
        raise BenchError(f"Kafka did not clean the whole log: {json.dumps(result)}")
    return Outcome(result["bytes_written"], result["messages_read"], result["messages_written"])


def _said(err: IO[bytes]) -> str:
    err.seek(0)
    return err.read().decode("utf-8", "replace")[-2000:].strip()
