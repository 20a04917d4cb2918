"""Commands over log directories of many logs, in a fresh process each time.

`plan`, `configs`, `explain`, `recover` and a log manager take logs that hold next to nothing, their
sizes made by sparse files. Small logs, all alike, are cleaned by Kafka's cleaner one after another
in one process, and by ours dry and for good on Spark, and for good in processes of this host, each
as a whole command: Java, Python, Spark and the processes start within the clock.

`python -m tests.bench.fleets LOG_DIR` opens all logs and closes them again.
"""

import json
import resource
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from compactor import LogManager, ManagerOptions
from storage.file_names import INDEX, LOG, SNAPSHOT, SWAP, TIME_INDEX, file_name
from storage.formats import (
    checkpoint,
    clean_shutdown,
    meta_properties,
    partition_metadata,
    producer_snapshot,
)
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.formats.meta_properties import META_PROPERTIES, MetaProperties
from storage.formats.partition_metadata import PARTITION_METADATA, PartitionMetadata
from storage.log.manager_options import BY_HAND
from tests.bench import scratch
from tests.bench.cleanings import CLOCK, command, command_of_settings, run_command
from tests.bench.process_tree import KIB
from tests.bench.results import BenchError, FleetResult, Sample
from tests.bench.scratch import Setup, kept
from tests.bench.timing import Measured, module, run_to_success, timed
from tests.bench.workloads import (
    COLD,
    CONFIGS,
    DRY_RUN,
    EXPLAIN,
    KAFKA,
    LOCAL_COLD,
    MANY_LOGS,
    NOW_MS,
    OPEN,
    PLAN,
    RECOVER,
    RUN,
    TOPIC_CONFIG,
    TOPIC_PARTITION,
    Fleet,
    ManyLogs,
)
from tests.oracle import kafka
from tests.support.reference_batch import ReferenceBatch, encode

SEGMENT_BYTES = 128 * 1024 * 1024
OFFSETS_A_SEGMENT = 1_000_000
INDEX_BYTES = 8 * (SEGMENT_BYTES // 4096 // 4)  # batches of 16 KB, each in the index
SIZES = {LOG: SEGMENT_BYTES, INDEX: INDEX_BYTES, TIME_INDEX: 12 * (INDEX_BYTES // 8)}
SWAPS_EVERY, STAGED_EVERY = 50, 3  # partitions
CUT_SHORT = (0, OFFSETS_A_SEGMENT)  # base offsets of the sources of each swap
TOPIC = TOPIC_PARTITION.partition("-")[0]


class Command(NamedTuple):
    """What is done with a fleet.

    Args:
        write: Writes its log directory, once.
        argv: Returns the command line of a log directory.
        taken: Returns how many logs, or topics, an answer says that it took.
        prepare: Prepares the directory for a turn; returns how many the command has to take.
        warms_up: Turns that are not counted.
        shares: The command whose log directory it takes; None: it has its own.
    """

    write: Callable[[Path, Fleet], None]
    argv: Callable[[Path], list[str]]
    taken: Callable[[dict[str, Any]], int]
    prepare: Callable[[Path], int] = lambda log_dir: len(partitions_of(log_dir))
    warms_up: int = 0
    shares: str | None = None


def measure(setup: Setup, name: str) -> FleetResult:
    """Run one of the commands in turns; BenchError unless it takes every log each time."""
    fleet, over = Fleet().quick() if setup.is_quick else Fleet(), COMMANDS[name]
    setup.tell(f"{name}: {fleet.segments:,} segments in {fleet.partitions:,} partitions")
    key = fleet.key(over.shares or name)
    log_dir = kept(setup.scratch, key, lambda target: over.write(target, fleet))
    samples, peaks = [], []
    for turn in range(over.warms_up + setup.repetitions):
        expected = over.prepare(log_dir)
        done = run_to_success(over.argv(log_dir))
        answer = done.answer()
        if over.taken(answer) != expected:
            raise BenchError(f"{name} takes {over.taken(answer)}, not all of {expected}")
        if turn >= over.warms_up:  # one that measures itself says so
            samples.append(Sample(*answer.get("sample", done.sample)))
            peaks.append(answer.get("peak_rss_bytes", done.peak_rss_bytes))
    return FleetResult(fleet.partitions, fleet.segments, samples, max(peaks))


def partitions_of(log_dir: Path) -> list[Path]:
    return sorted(path for path in log_dir.iterdir() if path.is_dir())


def write_fleet(log_dir: Path, fleet: Fleet, has_batches: bool = False) -> None:
    """Write logs of dirty segments, with an empty active one, as after a roll and a clean stop.

    has_batches: begin each `.log` with a batch. `recover` leaves a log alone that has none.
    """
    for number in range(fleet.partitions):
        topic, partition = divmod(number, fleet.partitions_a_topic)
        directory = log_dir / f"topic-{topic:03}-{partition}"
        directory.mkdir(parents=True)
        metadata = partition_metadata.encode(PartitionMetadata(0, UUID(int=topic + 1)))
        (directory / PARTITION_METADATA).write_bytes(metadata)
        active = (fleet.segments_a_partition - 1) * OFFSETS_A_SEGMENT
        for base_offset in range(0, active, OFFSETS_A_SEGMENT):
            _write_sparse(directory, base_offset, has_batches)
        for suffix in SIZES:
            (directory / file_name(active, suffix)).touch()
        (directory / file_name(active, SNAPSHOT)).write_bytes(producer_snapshot.encode([]))
    properties = MetaProperties(version=1, cluster_id="bench", node_id=1, directory_id=None)
    meta_properties.write(str(log_dir), properties)
    clean_shutdown.write(str(log_dir))


def _write_sparse(directory: Path, base_offset: int, has_batch: bool) -> None:
    for suffix, size_bytes in SIZES.items():
        with (directory / file_name(base_offset, suffix)).open("wb") as out:
            if has_batch and suffix == LOG:
                out.write(_batch(base_offset, base_offset + OFFSETS_A_SEGMENT - 1))
            out.truncate(size_bytes)


def _batch(first_offset: int, last_offset: int) -> bytes:
    return encode(ReferenceBatch(first_offset, last_offset, 0, 0, 0, 0))


def leave_killed_run(log_dir: Path) -> int:
    """Leave what a killed run would: in the middle of a swap, or with a file staged.

    Returns:
        In how many partitions.
    """
    touched = 0
    for number, partition in enumerate(partitions_of(log_dir)):
        if not number % SWAPS_EVERY:
            for base_offset in CUT_SHORT:
                _write_sparse(partition, base_offset, has_batch=True)
            merged = _batch(0, CUT_SHORT[-1] + 1)
            for suffix, data in {LOG: merged, INDEX: b"", TIME_INDEX: b""}.items():
                (partition / (file_name(0, suffix) + SWAP)).write_bytes(data)
        if not number % STAGED_EVERY:
            staged = partition / f"{file_name(0, LOG)}.compactor-dead-rewrite-0-1"
            staged.write_bytes(b"half a segment")
        touched += not number % SWAPS_EVERY or not number % STAGED_EVERY
    return touched


def write_opened(log_dir: Path, fleet: Fleet) -> None:
    """Write logs as for `plan`, each with a batch in its active segment."""
    write_fleet(log_dir, fleet)
    active = (fleet.segments_a_partition - 1) * OFFSETS_A_SEGMENT
    for partition in partitions_of(log_dir):
        (partition / file_name(active, LOG)).write_bytes(_batch(active, active))


def open_all(log_dir: str) -> dict[str, Any]:
    """Measure how a log manager opens all logs; they are closed again."""
    manager = LogManager([log_dir], ManagerOptions(intervals=BY_HAND))
    sample, _ = timed(manager.start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB
    answer = {"logs": len(manager.logs), "sample": sample, "peak_rss_bytes": peak}
    if failed := manager.close():
        raise BenchError(f"logs could not be closed: {failed[0]}")
    return answer


def _middle_of(log_dir: Path) -> str:
    """Return the name of a log that is neither the first nor the last."""
    names = [path.name for path in partitions_of(log_dir)]
    return names[len(names) // 2]


COMMANDS = {
    PLAN: Command(
        write_fleet,
        lambda log_dir: command("plan", log_dir),
        lambda answer: int(answer["totals"]["to_clean"]),
        warms_up=1,  # the directories are in the kernel's caches then
    ),
    CONFIGS: Command(
        write_fleet,
        lambda log_dir: command_of_settings("configs", log_dir, "--format", "json"),
        lambda answer: len(answer["topics"]),
        lambda log_dir: len({path.name.rpartition("-")[0] for path in partitions_of(log_dir)}),
        warms_up=1,
        shares=PLAN,
    ),
    EXPLAIN: Command(
        write_fleet,
        lambda log_dir: command_of_settings(
            "explain", log_dir, *CLOCK, _middle_of(log_dir), "--format", "json"
        ),
        lambda answer: int(answer["outcome"] == "to-clean"),
        lambda _: 1,
        warms_up=1,
        shares=PLAN,
    ),
    RECOVER: Command(
        lambda log_dir, fleet: write_fleet(log_dir, fleet, has_batches=True),
        lambda log_dir: module("compactor", "recover", str(log_dir), "--format", "json"),
        lambda answer: int(answer["totals"]["recovered"]),
        leave_killed_run,
    ),
    OPEN: Command(
        write_opened,
        lambda log_dir: module("tests.bench.fleets", str(log_dir)),
        lambda answer: int(answer["logs"]),
        warms_up=1,  # it leaves the directory as a clean shutdown does
    ),
}


def measure_many_logs(setup: Setup) -> dict[str, FleetResult]:
    """Clean by each side, in turn; BenchError unless all logs were cleaned."""
    shape = ManyLogs().quick() if setup.is_quick else ManyLogs()
    setup.tell(f"{MANY_LOGS}: {shape.logs:,} logs of 75 KB")
    one = scratch.built(setup.scratch, shape.log)
    log_dir = kept(setup.scratch, shape.key(), lambda target: spread(one, target, shape.logs))
    sides: dict[str, Callable[[Path], Measured]] = {
        KAFKA: lambda copy: _by_kafka(setup, copy),
        DRY_RUN: lambda copy: _by_us(setup, copy, "would-clean", "--dry-run"),
        RUN: lambda copy: _by_us(setup, copy, "cleaned"),
        LOCAL_COLD: lambda copy: _by_us(setup, copy, "cleaned", side=LOCAL_COLD),
    }
    turns: dict[str, list[Measured]] = {side: [] for side in sides}
    for _ in range(setup.repetitions):
        for side, clean in sides.items():
            with scratch.fresh_copy(setup.scratch, log_dir) as copy:
                scratch.settle()
                turns[side].append(clean(copy))
    segments = shape.logs * len(list((one / TOPIC_PARTITION).glob("*.log")))
    return {
        side: FleetResult(
            shape.logs,
            segments,
            [turn.sample for turn in taken],
            max(turn.peak_rss_bytes for turn in taken),
        )
        for side, taken in turns.items()
    }


def spread(one: Path, target: Path, logs: int) -> None:
    """Write a log directory in which one log stands so many times, as partitions of its topic."""
    target.mkdir(parents=True)
    for name in (CLEAN_SHUTDOWN, META_PROPERTIES):
        shutil.copyfile(one / name, target / name)
    for number in range(logs):
        shutil.copytree(one / TOPIC_PARTITION, target / f"{TOPIC}-{number}")
    for path in one.glob("*-checkpoint"):
        offsets = checkpoint.read(str(path)).values()
        entries = {(TOPIC, number): offset for offset in offsets for number in range(logs)}
        checkpoint.write(str(target / path.name), entries)


def _by_kafka(setup: Setup, log_dir: Path) -> Measured:
    configs = setup.scratch.work / "topic-configs.json"
    configs.write_text(json.dumps({TOPIC: TOPIC_CONFIG}), "utf-8")
    argv = kafka.command("clean-all", log_dir, configs, "--now", str(NOW_MS))
    done = run_to_success(argv)
    if any("error" in of_log for of_log in json.loads(done.stdout).values()):
        raise BenchError(f"Kafka did not clean all logs: {done.stdout[:500]}")
    return done


def _by_us(setup: Setup, log_dir: Path, status: str, *options: str, side: str = COLD) -> Measured:
    done = run_to_success(run_command(setup, log_dir, *options, side=side))
    wrong = [log for log in done.answer()["logs"] if log["status"] != status]
    if wrong:
        raise BenchError(f"not all logs are {status}: {wrong[0]}")
    return done


if __name__ == "__main__":
    sys.stdout.write(json.dumps(open_all(sys.argv[1])))
