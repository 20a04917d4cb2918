"""Retention held against Kafka's own: logs that both let it pass over, compared file by file.

Each log has two copies: `oracle clean` (where the round cleans it) and `oracle retain` work on the
one, a round of ours on the other. Then segments, indexes, snapshots, leader epochs and the log
start offset must agree.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from storage.formats import checkpoint
from tests.campaign import Case, Tried
from tests.oracle import kafka, versions
from tests.support.command_process import compactor

T0_MS = 1_700_000_000_000
NEVER = {"min.cleanable.dirty.ratio": "1.0"}  # retention alone: no round takes the log on
CLEANED = {"min.cleanable.dirty.ratio": "0.0"}
BOTH = {"cleanup.policy": "compact,delete"}
SNAPSHOT_OF_NOBODY = 10  # bytes: Kafka writes such ones wherever it opens a log

Operation = dict[str, object]


class RetainedLog(NamedTuple):
    name: str
    script: list[Operation]
    config: dict[str, str]
    now_ms: int = T0_MS + 10_000


def _append(ts: int, key: str = "a", **fields: object) -> list[Operation]:
    records = [{"ts": T0_MS + ts, "k": key, "v": "v" * 20}]
    return [{"op": "append", "records": records, **fields}]


ROLL: Operation = {"op": "roll"}


def _segments(*times: int, epochs: tuple[int, ...] = (), roll: bool = False) -> list[Operation]:
    """A segment of one record for each time; the last is active unless an empty one is."""
    script: list[Operation] = [{"op": "clock", "ms": T0_MS}]
    for number, ts in enumerate(times):
        script += [ROLL] if number else []
        epoch = epochs[number] if epochs else 0
        script += _append(ts, f"k{number}", leader_epoch=epoch)
    return [*script, ROLL] if roll else script


def logs() -> Iterator[RetainedLog]:
    by_time = BOTH | NEVER | {"retention.ms": "1000"}
    yield RetainedLog("time", _segments(7000, 9000, 8000, 10_000), by_time)
    yield RetainedLog("all-expired", _segments(1, 2, 3), by_time)
    yield RetainedLog("all-expired-epochs", _segments(1, 2, 3, epochs=(0, 4, 4)), by_time)
    yield RetainedLog("empty-active", _segments(1, 2, roll=True), by_time)
    epochs = _segments(1, 2, 3, 9999, epochs=(0, 1, 1, 5))
    yield RetainedLog("epochs", epochs, by_time)
    high = [*_segments(1, 2, 3, 4), {"op": "high_watermark", "offset": 2}]
    yield RetainedLog("high-watermark", high, by_time)
    one = _segments(1, 1, 1, 1)
    for size in (0, 1, 100, 180, 181, 271, 272, 360, 1000):
        settings = {"retention.ms": "-1", "retention.bytes": str(size)}
        yield RetainedLog(f"size-{size}", one, BOTH | NEVER | settings)
    start: list[Operation] = [*_segments(1, 2, 3, 4), {"op": "log_start", "offset": 2}]
    yield RetainedLog("log-start-compact", start, {"cleanup.policy": "compact", **NEVER})
    yield RetainedLog("log-start-then-time", start, BOTH | NEVER | {"retention.ms": "9997"})
    inside: list[Operation] = [
        *_append(1, "a", leader_epoch=0), *_append(2, "b", leader_epoch=2), ROLL,
        *_append(3, "c", leader_epoch=2), *_append(4, "d", leader_epoch=3), ROLL,
        *_append(5, "e", leader_epoch=3), {"op": "log_start", "offset": 3},
    ]  # fmt: skip
    yield RetainedLog("log-start-inside", inside, {"cleanup.policy": "compact", **NEVER})
    producers: list[Operation] = [
        *_append(1, "a", pid=7, epoch=0, seq=0), ROLL, *_append(2, "b", pid=7, epoch=0, seq=1),
    ]  # fmt: skip
    yield RetainedLog("all-expired-producer", producers, by_time)
    yield RetainedLog("not-delete", _segments(1, 2, 3), {"cleanup.policy": "compact", **NEVER})
    merged = _segments(1, 2, 9500, 9600)
    yield RetainedLog("cleaned-first", merged, BOTH | CLEANED | {"retention.ms": "1000"})
    same: list[Operation] = []
    for ts in (1, 2, 3, 4):
        same += [*_append(ts, "same"), ROLL]
    settings = {"retention.ms": "1000", "segment.bytes": "100"}
    yield RetainedLog("cleaned-to-nothing", same, BOTH | CLEANED | settings)


def differences(log: RetainedLog, root: Path, run: Callable[[Path, Path, int], None]) -> list[str]:
    """Where ours differs from Kafka's. run: a round: log directory, configs, clock."""
    root.mkdir()
    script = root / "script.jsonl"
    lines = [{"op": "config", **log.config}, *log.script]
    script.write_text("".join(json.dumps(line) + "\n" for line in lines))
    kafkas, ours, configs = root / "kafkas", root / "ours", root / "configs.json"
    kafka.run("build", script, kafkas)
    shutil.copytree(kafkas, ours)
    configs.write_text(json.dumps({"t": log.config}))
    options = ["--now", str(log.now_ms)]
    for name, value in log.config.items():
        options += ["--config", f"{name}={value}"]
    if log.config["min.cleanable.dirty.ratio"] == CLEANED["min.cleanable.dirty.ratio"]:
        kafka.run("clean", kafkas, "t-0", *options)
    kafka.run("retain", kafkas, "t-0", *options)
    run(ours, configs, log.now_ms)
    return [f"{log.name}: {problem}" for problem in _compare(kafkas, ours)]


def _compare(kafkas: Path, ours: Path) -> Iterator[str]:
    want, have = _files(kafkas / "t-0"), _files(ours / "t-0")
    for name in sorted(want.keys() | have.keys()):
        if want.get(name) != have.get(name):
            yield f"{name}: Kafka {_told(want.get(name))}, ours {_told(have.get(name))}"
    starts = [
        checkpoint.read(str(d / checkpoint.LOG_START)).get(("t", 0), 0) for d in (kafkas, ours)
    ]
    if starts[0] != max(starts[1], _first_base(have)):
        yield f"log start offset: Kafka {starts[0]}, ours {starts[1]}"
    for name in (checkpoint.CLEANER_OFFSET, checkpoint.RECOVERY_POINT):
        entries = [checkpoint.read(str(d / name)).get(("t", 0)) for d in (kafkas, ours)]
        if entries[0] != entries[1]:
            yield f"{name}: Kafka {entries[0]}, ours {entries[1]}"


def _files(partition: Path) -> dict[str, bytes]:
    """Every file but snapshots of nobody, which Kafka writes when it opens and closes a log."""
    return {
        path.name: path.read_bytes()
        for path in partition.iterdir()
        if not (path.suffix == ".snapshot" and path.stat().st_size == SNAPSHOT_OF_NOBODY)
    }


def _first_base(files: dict[str, bytes]) -> int:
    return min(int(name[:20]) for name in files if name.endswith(".log"))


def _told(data: bytes | None) -> str:
    return "has none" if data is None else f"{len(data)} bytes {data[-40:]!r}"


def cases(scratch: Path, group: str) -> Iterator[Case]:
    """Yield every log."""
    for log in logs():
        yield Case(log.name, partial(_tried, log, scratch / log.name), group)


def _tried(log: RetainedLog, root: Path) -> Tried:
    return Tried(differences(log, root, _run))


def _run(log_dir: Path, configs: Path, now_ms: int) -> None:
    words = ["run", str(log_dir), "--topic-configs", str(configs), "--as-of", str(now_ms)]
    words += ["--kafka", versions.chosen().name, "--any-clock", "--drop-null-keys"]
    done = compactor(*words)
    if done.returncode:
        raise RuntimeError(f"compactor {' '.join(words)}:\n{done.stdout}{done.stderr}")
