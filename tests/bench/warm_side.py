"""Our side, warm: the second round in one session.

A turn is a process of its own: it starts Spark, cleans a first copy, which is not counted, and then
the one that is. Where memory is wanted, a third round follows whose times nobody reads, because
polling memory costs time.
"""

import json
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench import cold_side, measured
from tests.bench.errors import BenchError
from tests.bench.process_tree import MemoryWatch
from tests.bench.results import ALL, Outcome, Peak, Sample
from tests.bench.scratch import Scratch
from tests.bench.warm_session import Request

COUNTED_ROUND = 2


class WarmTurn(NamedTuple):
    sample: Sample
    outcome: Outcome
    first_round_seconds: float
    cpu_seconds: dict[str, float]  # by kind of process, without ALL
    phases: dict[str, float]  # seconds
    memory: dict[str, Peak]


def clean(scratch: Scratch, log_dir: Path, master: str, watch_memory: bool = False) -> WarmTurn:
    """One turn."""
    rounds = COUNTED_ROUND + watch_memory
    request = Request(str(log_dir), str(scratch.root), master, rounds)
    argv = [sys.executable, "-m", "tests.bench.warm_session", json.dumps(asdict(request))]
    with tempfile.TemporaryFile() as err:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=err, cwd=measured.SOURCES)
        try:
            answers, memory = _answers(process)
            measured.wait(process)
        finally:
            measured.end(process)
        if process.returncode or len(answers) != rounds:
            err.seek(0)
            said = err.read().decode("utf-8", "replace")[-2000:].strip()
            raise BenchError(f"the warm session ended with {process.returncode}: {said}")
    first, second = answers[:COUNTED_ROUND]
    used = second["cpu_seconds"]
    return WarmTurn(
        Sample(second["seconds"], used.pop(ALL)),
        cold_side.outcome(second["logs"]),
        first["seconds"],
        used,
        second["phases"],
        memory,
    )


def _answers(
    process: "subprocess.Popen[bytes]",
) -> tuple[list[dict[str, Any]], dict[str, Peak]]:
    """All answers, and the memory in whatever comes after the round that counts."""
    answers: list[dict[str, Any]] = []
    assert process.stdout is not None
    with ExitStack() as stack:
        lines = stack.enter_context(process.stdout)
        watch = MemoryWatch(process.pid)
        for line in lines:
            answers.append(json.loads(line))
            if len(answers) == COUNTED_ROUND:
                stack.enter_context(watch)
    return answers, watch.peaks()
