"""Many small logs in one log directory: what each costs beside its bytes.

Kafka's cleaner takes them one after another in one process, and ours dry and for good, each as a
whole command: Java, Python and Spark start within the clock.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from storage.formats import checkpoint
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.formats.meta_properties import META_PROPERTIES
from tests.bench import built_logs, cold_side, measured
from tests.bench.errors import BenchError
from tests.bench.measured import Measured
from tests.bench.results import FleetResult
from tests.bench.scratch import Scratch, fresh_copy, kept, settle
from tests.bench.workloads import (
    KAFKA,
    NOW_MS,
    TOPIC_CONFIG,
    TOPIC_PARTITION,
    ManyLogs,
)
from tests.oracle import kafka

DRY_RUN, RUN = "dry run", "run"
TOPIC = TOPIC_PARTITION.partition("-")[0]


def measure(
    scratch: Scratch, shape: ManyLogs, master: str, repetitions: int
) -> dict[str, FleetResult]:
    """Clean so many times by each side, in turn; BenchError unless all logs were cleaned."""
    one = built_logs.log_dir_of(scratch, shape.log)
    log_dir = kept(scratch, shape.key(), lambda target: spread(one, target, shape.logs))
    sides: dict[str, Callable[[Path], Measured]] = {
        KAFKA: lambda copy: _kafka(scratch, copy),
        DRY_RUN: lambda copy: _ours(scratch, copy, master, "would-clean", "--dry-run"),
        RUN: lambda copy: _ours(scratch, copy, master, "cleaned"),
    }
    turns: dict[str, list[Measured]] = {side: [] for side in sides}
    for _ in range(repetitions):
        for side, clean in sides.items():
            with fresh_copy(scratch, log_dir) as copy:
                settle()
                turns[side].append(clean(copy))
    return {
        side: FleetResult(
            shape.logs,
            shape.logs * len(list((one / TOPIC_PARTITION).glob("*.log"))),
            [turn.sample for turn in of_side],
            max(turn.peak_rss_bytes for turn in of_side),
        )
        for side, of_side in turns.items()
    }


def spread(one: Path, target: Path, logs: int) -> None:
    """Write a log directory in which one log stands so many times, as partitions of its topic."""
    target.mkdir(parents=True)
    for name in (CLEAN_SHUTDOWN, META_PROPERTIES):
        shutil.copyfile(one / name, target / name)
    for number in range(logs):
        shutil.copytree(one / TOPIC_PARTITION, target / f"{TOPIC}-{number}")
    for path in one.glob("*-checkpoint"):
        entries = checkpoint.read(str(path))
        spread_out = {
            (TOPIC, number): offset for offset in entries.values() for number in range(logs)
        }
        checkpoint.write(str(target / path.name), spread_out)


def _kafka(scratch: Scratch, log_dir: Path) -> Measured:
    configs = scratch.work / "topic-configs.json"
    configs.write_text(json.dumps({TOPIC: TOPIC_CONFIG}), "utf-8")
    argv = kafka.command("clean-all", log_dir, configs, "--now", str(NOW_MS))
    done = measured.run_to_success(argv)
    found = json.loads(done.stdout)
    if any("error" in of_log for of_log in found.values()):
        raise BenchError(f"Kafka did not clean all logs: {done.stdout[:500]}")
    return done


def _ours(scratch: Scratch, log_dir: Path, master: str, status: str, *options: str) -> Measured:
    places = ["--work-dir", str(scratch.work), "--master", master]
    argv = cold_side.command("run", log_dir, *places, "--format", "json", *options)
    done = measured.run_to_success(argv)
    logs = json.loads(done.stdout.splitlines()[-1])["logs"]
    wrong = [log for log in logs if log["status"] != status]
    if wrong:
        raise BenchError(f"not all logs are {status}: {wrong[0]}")
    return done
