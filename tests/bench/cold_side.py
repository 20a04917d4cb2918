"""Our side, cold: a whole `compactor` process, from the shell's prompt to the report."""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench import measured
from tests.bench.errors import BenchError
from tests.bench.results import Outcome, Peak, Sample
from tests.bench.scratch import Scratch, fresh_copy
from tests.bench.workloads import NOW_MS, TOPIC_CONFIG


class ColdTurn(NamedTuple):
    sample: Sample
    outcome: Outcome
    memory: dict[str, Peak]


def clean(scratch: Scratch, log_dir: Path, master: str, watch_memory: bool = False) -> ColdTurn:
    """One `compactor run` over a fresh copy."""
    with fresh_copy(scratch, log_dir) as copy:
        argv = command("run", copy, "--work-dir", str(scratch.work), "--master", master)
        done = measured.run_to_success([*argv, "--format", "json"], watch_memory)
    report = json.loads(done.stdout.splitlines()[-1])
    return ColdTurn(done.sample, outcome(report["logs"]), done.memory)


def command(verb: str, log_dir: Path, *options: str) -> list[str]:
    """The words of a command line; the clock and the topic configuration are every side's."""
    settings = ["--include", ".*"]
    settings += [
        word for name, value in TOPIC_CONFIG.items() for word in ("--set", f"{name}={value}")
    ]
    return program(verb, str(log_dir), *settings, "--as-of", str(NOW_MS), "--any-clock", *options)


def program(*words: str) -> list[str]:
    return [sys.executable, "-m", "compactor", *words]


def outcome(logs: list[dict[str, Any]]) -> Outcome:
    """The logs of a report, which are one; BenchError unless it was cleaned."""
    (log,) = logs
    if log["status"] != "cleaned":
        raise BenchError(f"ours did not clean the log: {log['status']}, {log['reason']}")
    return Outcome(log["bytes_after"], log["records"]["read"], log["records"]["kept"])
