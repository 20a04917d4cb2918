"""Holds what a cleaning left against what Kafka's cleaner left, file by file and byte by byte.

python -m tests.oracle.compare BEFORE EXPECTED ACTUAL

All three are directories of one partition, or log directories: as built, as Kafka cleaned it, as
it was cleaned otherwise. Kafka opens a log before it cleans it and closes it afterwards, and may
write producer snapshots then; these are no part of cleaning, so a snapshot counts only where it
stood before. Leader epochs and log start are as they were, or as Kafka left them where its
retention took segments.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tests.oracle import kafka

SEGMENT_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")
SNAPSHOT = ".snapshot"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
ABORT_KEY = "00000000"  # of a control record, in hex (F-6.1): version 0, type 0
LEADER_EPOCHS = "leader-epoch-checkpoint"
LOCK = ".lock"  # Kafka's own; it may stay behind


def differences(before: Path, expected: Path, actual: Path) -> Iterator[str]:
    """What is wrong with one partition directory; nothing if it is as Kafka's cleaner leaves it."""
    old, want, have = _files(before), _files(expected), _files(actual)
    segment_files = {name for name in want if name.endswith(SEGMENT_SUFFIXES)}
    snapshots = {name for name in want.keys() & old.keys() if name.endswith(SNAPSHOT)}
    others = {name for name in old if not name.endswith((*SEGMENT_SUFFIXES, SNAPSHOT))}
    expected_names = segment_files | snapshots | others
    for name in sorted(expected_names ^ have.keys()):
        yield f"{name}: {'missing' if name in expected_names else 'should not be there'}"
    from_kafka = segment_files | ({LEADER_EPOCHS} if has_retained(before, expected) else set())
    for name in sorted(expected_names & have.keys()):
        yield from _file_differences((want if name in from_kafka else old)[name], have[name])


def has_retained(before: Path, expected: Path) -> bool:
    """Whether Kafka's retention took the first segments; a cleaning keeps the first base offset."""
    first, now = (min(d.glob("*.log"), default=None) for d in (before, expected))
    return first is not None and now is not None and first.name < now.name


def log_dir_differences(before: Path, expected: Path, actual: Path) -> Iterator[str]:
    """What is wrong with the files of the log directory itself, partitions and checkpoint aside."""
    old, have = _files(before), _files(actual)
    for names in (old, have):
        names.pop(LOCK, None)
        names.pop(CLEANER_CHECKPOINT, None)
    for name in sorted(old.keys() ^ have.keys()):
        yield f"{name}: {'missing' if name in old else 'should not be there'}"
    retained = [
        name
        for name in partition_names(before) & partition_names(expected)
        if has_retained(before / name, expected / name)
    ]
    for name in sorted(old.keys() & have.keys()):
        if name == LOG_START_CHECKPOINT and retained:
            was, kafkas, ours = (checkpoint_entries(d, name) for d in (before, expected, actual))
            if ours != was | {partition: kafkas[partition] for partition in retained}:
                yield f"{name}: other entries"
        else:
            yield from _file_differences(old[name], have[name])
    if partition_names(expected) != partition_names(actual):
        yield f"directories: {sorted(partition_names(expected) ^ partition_names(actual))}"


def checkpoint_entries(log_dir: Path, name: str = CLEANER_CHECKPOINT) -> dict[str, int]:
    """Offset by TOPIC-PARTITION. F-13.1: version, count, an entry a line."""
    path = log_dir / name
    if not path.exists():
        return {}
    version, count, *lines = path.read_text().splitlines()
    assert (version, int(count)) == ("0", len(lines)), path
    entries = [line.split(" ") for line in lines]
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in entries}


def partition_names(log_dir: Path) -> set[str]:
    return {path.name for path in log_dir.iterdir() if path.is_dir()}


def first_other_line(expected: Path, actual: Path) -> str | None:
    """The first batch or record that differs, as Kafka's own reader shows it."""
    lines = (_dump(directory) for directory in (expected, actual))
    for number, (want, have) in enumerate(zip_longest(*lines), start=1):
        if want != have:
            return f"line {number} of the dump\n  expected {want}\n  actual   {have}"
    return None


def latest_values(partition_dir: Path, log_start_offset: int = 0) -> dict[str, str]:
    """Key to value, both in hex, of every key that is alive at the end of the log.

    As one sees it who reads committed records, open transactions among them.
    """
    return alive(list(_dump(partition_dir)), log_start_offset)


def alive(lines: Sequence[dict[str, Any]], log_start_offset: int = 0) -> dict[str, str]:
    """latest_values of a dump: read from its end, a marker stands before its data."""
    values: dict[str, str | None] = {}
    aborts: dict[int, bool] = {}  # by producer, what the marker behind the batch says
    for batch, records in reversed(_batches(lines)):
        if batch["control"]:
            aborts.update((batch["pid"], record["key"] == ABORT_KEY) for record in records)
        elif not (batch["txn"] and aborts.get(batch["pid"])):
            for record in reversed(records):
                if record["key"] is not None and record["offset"] >= log_start_offset:
                    values.setdefault(record["key"], record["value"])
    return {key: value for key, value in values.items() if value is not None}


def _batches(
    lines: Sequence[dict[str, Any]],
) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    batches: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    for line in lines:
        if "base_offset" in line:
            batches.append((line, []))
        else:
            batches[-1][1].append(line)
    return batches


def _files(directory: Path) -> dict[str, Path]:
    return {path.name: path for path in directory.iterdir() if not path.is_dir()}


def _file_differences(expected: Path, actual: Path) -> Iterator[str]:
    want, have = expected.read_bytes(), actual.read_bytes()
    if want != have:
        same = next((i for i, (a, b) in enumerate(zip(want, have, strict=False)) if a != b), None)
        position = min(len(want), len(have)) if same is None else same
        sizes = f"{len(want)} bytes expected, {len(have)} found"
        yield f"{actual.name}: differs from byte {position} on ({sizes})"
    if actual.name.endswith(".log"):
        want_ms, have_ms = (path.stat().st_mtime_ns // 1_000_000 for path in (expected, actual))
        if want_ms != have_ms:
            yield f"{actual.name}: modified at {want_ms} ms expected, {have_ms} ms found"


def _dump(partition_dir: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in kafka.run("dump", partition_dir).splitlines())


def _all_differences(before: Path, expected: Path, actual: Path) -> Iterator[str]:
    if any(path.suffix == ".log" for path in before.iterdir()):
        yield from differences(before, expected, actual)
        return
    yield from log_dir_differences(before, expected, actual)
    for name in sorted(partition_names(expected) & partition_names(actual)):
        for problem in differences(before / name, expected / name, actual / name):
            yield f"{name}/{problem}"
    want, have = checkpoint_entries(expected), checkpoint_entries(actual)
    for name in sorted(want.keys() | have.keys()):
        if want.get(name) != have.get(name):
            yield f"checkpoint of {name}: {want.get(name)} expected, {have.get(name)} found"


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 3:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    found = list(_all_differences(*map(Path, arguments)))
    sys.stdout.write("\n".join(found or ["identical"]) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
