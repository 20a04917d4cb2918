"""Logs of a broker that was killed, recovered by Kafka and by us: held against each other.

Each seed takes the golden logs, damages each of them as a crash may (a torn end of any length, lost
indexes, snapshots and leader epochs, files full of zeros, a recovery point anywhere), has Kafka's
loader recover one copy and us another, and compares all files. What we leave as it is, though Kafka
cuts it off, has to say why.
"""

import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from compactor.recovery.log_dir_recovery import LoadRules, LogRecovery, recover_log_dir
from compactor.settings.config import kafka_choice, load_config
from storage.file_names import INDEX, LOG, SNAPSHOT, TIME_INDEX, TXN_INDEX, parse_partition_dir
from storage.formats import checkpoint, clean_shutdown, leader_epoch_checkpoint, producer_snapshot
from storage.formats.batch_header import LOG_OVERHEAD_BYTES
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.record_batch import FRAMING
from tests.campaign import Case, Tried
from tests.golden import corpora
from tests.oracle import kafka, versions

PREALLOCATED_BYTES = {INDEX: 10_485_760, TIME_INDEX: 10_485_756}
# Kafka cuts the log off, or splits a segment, where we leave it to a person
FULL_INDEX = "Attempt to append to a full"  # here it is made sparse: docs/differences.md
LEFT = (
    "no crash can have torn them",
    "would lose that",
    "does not fit a segment",
    "before its log",
)


def batch_starts(data: bytes) -> list[int]:
    """By the lengths in the framing alone; the end of the file last."""
    starts, position = [], 0
    while position < len(data):
        starts.append(position)
        position += FRAMING.unpack_from(data, position)[1] + LOG_OVERHEAD_BYTES
    return [*starts, position]


def damage(partition: Path, chance: random.Random) -> int | None:
    """Do to a log what a crash may; its recovery point, None: it is in no checkpoint."""
    logs = sorted(partition.glob(f"*{LOG}"))
    bases = [int(path.stem) for path in logs]
    recovery_point = chance.choice([None, None, 0, *bases])
    data = logs[-1].read_bytes()
    starts = batch_starts(data)
    if chance.random() < 0.7 and len(starts) > 1:
        _tear(logs[-1], data, chance.choice(starts[:-1]), chance)
    for path in logs:
        for kind in (INDEX, TIME_INDEX):
            _damage_index(path.with_suffix(kind), kind, chance, path is logs[-1])
        if chance.random() < 0.1:
            path.with_suffix(TXN_INDEX).unlink(missing_ok=True)
    for path in partition.glob(f"*{SNAPSHOT}"):
        fate = chance.random()
        if fate < 0.2:
            path.unlink()
        elif fate < 0.3:
            path.write_bytes(path.read_bytes()[:-1])
    if chance.random() < 0.3:
        (partition / LEADER_EPOCH_CHECKPOINT).unlink(missing_ok=True)
    return recovery_point


def _tear(path: Path, data: bytes, start: int, chance: random.Random) -> None:
    """Cut the log within a batch, or let zeros, or noise, stand where the batch was."""
    torn = data[: chance.randrange(start, len(data))]
    if chance.random() < 0.5:
        path.write_bytes(torn)
    elif chance.random() < 0.7:
        path.write_bytes(torn + bytes(chance.randrange(1, 5000)))
    else:
        path.write_bytes(data[:start] + chance.randbytes(chance.randrange(1, 300)))


def _damage_index(path: Path, kind: str, chance: random.Random, is_active: bool) -> None:
    fate = chance.random()
    if not path.exists():
        return
    if fate < 0.1 and kind == INDEX:
        path.unlink()
    elif is_active and fate < 0.2:  # as a killed broker leaves it
        with open(path, "r+b") as index:
            index.truncate(PREALLOCATED_BYTES[kind])
    elif is_active and fate < 0.5:
        path.write_bytes(path.read_bytes()[: -8 if kind == INDEX else -12])


def differences(expected: Path, actual: Path) -> Iterator[str]:
    """What is not the same in two partition directories; of snapshots, what they say."""
    files = [
        {path.name: path.read_bytes() for path in directory.iterdir()}
        for directory in (expected, actual)
    ]
    for found in files:  # a broker makes an empty one where there is none
        found.setdefault(LEADER_EPOCH_CHECKPOINT, b"")
        if leader_epoch_checkpoint.decode(found[LEADER_EPOCH_CHECKPOINT], "") == []:
            found[LEADER_EPOCH_CHECKPOINT] = b""
    for name in sorted(files[0].keys() | files[1].keys()):
        if name not in files[0] or name not in files[1]:
            yield f"{name} is {'missing' if name in files[0] else 'one too many'}"
            continue
        want, have = files[0][name], files[1][name]
        if want != have and name.endswith(SNAPSHOT):  # Kafka's order is that of a hash map
            if {*producer_snapshot.decode(want, "")} != {*producer_snapshot.decode(have, "")}:
                yield f"{name} says something else"
        elif want != have:
            yield f"{name} has other bytes: {len(want)} expected, {len(have)} found"


def check(seed: int, root: Path) -> Iterator[str]:
    """Everything that is not as Kafka leaves it, log by log."""
    fleet, chance = corpora.extracted(), random.Random(seed)
    root.mkdir(parents=True)
    kafkas, ours = root / "kafkas" / "log", root / "ours"
    shutil.copytree(fleet.before, kafkas)
    (kafkas / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    points = {}
    for path in sorted(kafkas.iterdir()):
        key = parse_partition_dir(path.name)
        if key is None or not path.is_dir() or not any(path.glob(f"*{LOG}")):
            continue
        recovery_point = damage(path, chance)
        if recovery_point is not None:
            points[key] = recovery_point
    checkpoint.write(str(kafkas / checkpoint.RECOVERY_POINT), points)
    shutil.copytree(kafkas, ours)
    said = kafka.run(
        "recover-all", root / "kafkas", fleet.topic_configs, "--now", str(fleet.now_ms)
    )
    results = json.loads(said)["results"]
    config = load_config(None, str(fleet.topic_configs), {})
    config = replace(config, kafka=kafka_choice(versions.chosen().name, "the oracle's"))
    rules = LoadRules(config, fleet.now_ms)
    logs = {log.name: log for log in recover_log_dir(str(ours), rules).logs}
    for name, result in sorted(results.items()):
        for problem in _problems(logs.get(name), result, kafkas / name, ours / name):
            yield f"seed {seed}, {name}: {problem}"
    for log in recover_log_dir(str(ours), rules).logs:
        # a producer that has expired is kept where it is replayed, and not where a snapshot has it
        others = [name for name in log.rebuilt if not name.endswith(SNAPSHOT)]
        if others or log.truncated or (log.problem is None and logs.get(log.name, log).problem):
            yield f"seed {seed}, {log.name}: done again {log}"


def _problems(
    log: LogRecovery | None, result: dict[str, object], expected: Path, actual: Path
) -> Iterator[str]:
    if log is not None and log.problem is not None:
        if "error" not in result and not any(why in log.problem for why in LEFT):
            yield f"not recovered: {log.problem}"
        return
    if "error" in result and FULL_INDEX not in str(result["error"]):
        yield f"Kafka fails with {result['error']}"
        return
    if "error" not in result:
        yield from differences(expected, actual)


def cases(seeds: int, scratch: Path, group: str) -> Iterator[Case]:
    """Yield all golden logs after a crash, so many times."""
    for seed in range(seeds):
        yield Case(f"crash {seed}", partial(_tried, seed, scratch / f"crash-{seed}"), group)


def _tried(seed: int, root: Path) -> Tried:
    found = list(check(seed, root))
    shutil.rmtree(root)
    return Tried(found)
