"""`inspect` over one log, in turn with a dry run's scan: processor time of their stages."""

import json
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict

from tests.bench import built_logs, measured
from tests.bench.errors import BenchError
from tests.bench.inspect_session import Request
from tests.bench.process_tree import MemoryWatch
from tests.bench.results import COUNT, MERGE, RESOLVE, SCAN, InspectionResult
from tests.bench.scratch import Scratch
from tests.bench.workloads import Workload

FIRST = 1  # turns that load what is loaded once


def measure(
    scratch: Scratch, workload: Workload, master: str, repetitions: int
) -> InspectionResult:
    """So many turns, and one more in which memory is watched."""
    log_dir = built_logs.log_dir_of(scratch, workload)
    request = Request(str(log_dir), str(scratch.root), master, FIRST + repetitions + 1)
    argv = [sys.executable, "-m", "tests.bench.inspect_session", json.dumps(asdict(request))]
    return _measured(workload.name, argv, repetitions)


def _measured(name: str, argv: list[str], repetitions: int) -> InspectionResult:
    with tempfile.TemporaryFile() as err, ExitStack() as stack:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=err, cwd=measured.SOURCES)
        watch, turns = MemoryWatch(process.pid), list[dict[str, float]]()
        assert process.stdout is not None
        try:
            for line in stack.enter_context(process.stdout):
                turns.append(json.loads(line))
                if len(turns) == FIRST + repetitions:
                    stack.enter_context(watch)
            measured.wait(process)
        finally:
            measured.end(process)
        if process.returncode or len(turns) != FIRST + repetitions + 1:
            err.seek(0)
            said = err.read().decode("utf-8", "replace")[-2000:].strip()
            raise BenchError(f"the inspections ended with {process.returncode}: {said}")
    counted = turns[FIRST:-1]
    used = {stage: [turn[stage] for turn in counted] for stage in (COUNT, MERGE, SCAN, RESOLVE)}
    return InspectionResult(name, used, watch.peaks())
