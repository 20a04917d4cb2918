"""Random appends that Kafka's own log and our writer must leave in the same bytes.

python -m tests.conformance.written_logs [--count 50] [--seed N …]

Every file of the partition is held against Kafka's but `partition.metadata`, which holds an id. Of
the first few, Kafka opens ours, as after a clean shutdown and as after a crash. A failing seed is
printed and its files kept; exit 1.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from storage.codecs.compression import Codec
from storage.formats.partition_metadata import PARTITION_METADATA
from storage.log.log_writer import LogDirWriter, LogSettings, LogWriter, Message, Producer
from tests.oracle import kafka

Operation = dict[str, Any]  # a line of a script of the oracle

_NOW = 1_700_000_000_000
_DAY_MS = 86_400_000
_LOADED = 3  # a load takes a second or two


def random_appends(seed: int) -> list[Operation]:
    """A script of appends and rolls that our writer can follow. The first line is the settings."""
    rng = random.Random(seed)
    segment_bytes = rng.choice([1000, 3000, 10_000, 1_000_000])
    settings = {
        "segment.bytes": segment_bytes,
        "segment.ms": rng.choice([100, 5000, 7 * _DAY_MS]),
        "index.interval.bytes": rng.choice([0, 100, 1000, 4096]),
        "segment.index.bytes": rng.choice([60, 1200, 10_485_760]),
        "max.message.bytes": segment_bytes,
        "message.timestamp.type": rng.choice(["CreateTime", "CreateTime", "LogAppendTime"]),
    }
    script: list[Operation] = [{"op": "config"} | {k: str(v) for k, v in settings.items()}]
    now, leader_epoch, sequences = _NOW, 0, dict.fromkeys(range(7), 0)
    largest_value = min(segment_bytes // 40, 4000)  # so that no batch outgrows a segment
    counts = [1, 1, 2, 6] if segment_bytes < 10_000 else [1, 2, 6, 20]
    for _ in range(rng.randrange(120)):
        now += rng.choice([0, 1, 10, 300])
        script.append({"op": "clock", "ms": now})
        leader_epoch += rng.choice([0] * 20 + [1, 3])
        if rng.random() < 0.05:
            script.append({"op": "roll"})
            continue
        records = [_record(rng, now, largest_value) for _ in range(rng.choice(counts))]
        append = {"op": "append", "records": records, "leader_epoch": leader_epoch}
        append["codec"] = rng.choice([codec.name.lower() for codec in Codec])
        if rng.random() < 0.3:
            producer_id = rng.randrange(7)
            append |= {"pid": producer_id, "epoch": 0, "seq": sequences[producer_id]}
            sequences[producer_id] += len(records)
        script.append(append)
    return script


def _record(rng: random.Random, now: int, largest_value: int) -> Operation:
    value = rng.choice("abc") * rng.choice([0, 1, 5, largest_value]) + str(rng.randrange(1000))
    return {
        "k": f"key-{rng.randrange(60)}",
        "v": None if rng.random() < 0.2 else value,
        "ts": now - rng.choice([0, 0, 1, 700]),
        "h": [["h", "x"], ["", None]][: rng.choice([0, 0, 0, 1, 2])],
    }


def write(script: Sequence[Operation], root: Path) -> None:
    """Do with our writer what the script says."""
    config = script[0]
    settings = LogSettings(
        int(config["segment.bytes"]),
        int(config["segment.ms"]),
        int(config["index.interval.bytes"]),
        int(config["segment.index.bytes"]),
    )
    stamped, now = config["message.timestamp.type"] == "LogAppendTime", _NOW
    with LogDirWriter(str(root), "conformance") as log_dir:
        log = log_dir.create("t", 0, settings)
        for operation in script[1:]:
            match operation["op"]:
                case "clock":
                    now = operation["ms"]
                case "roll":
                    log.roll()
                case "append":
                    _append(log, operation, now if stamped else None)


def _append(log: LogWriter, operation: Operation, append_time_ms: int | None) -> None:
    messages = [
        Message(
            record["k"].encode(),
            None if record["v"] is None else record["v"].encode(),
            record["ts"],
            tuple((k.encode(), None if v is None else v.encode()) for k, v in record["h"]),
        )
        for record in operation["records"]
    ]
    producer = None
    if "pid" in operation:
        producer = Producer(operation["pid"], operation["epoch"], operation["seq"])
    log.leader_epoch = operation["leader_epoch"]
    log.append(messages, Codec[operation["codec"].upper()], producer, append_time_ms)


def differences(expected: Path, actual: Path) -> Iterator[str]:
    """What is not the same in two partition directories, `partition.metadata` aside."""
    files = [
        {path.name: path.read_bytes() for path in directory.iterdir()}
        for directory in (expected, actual)
    ]
    for name in sorted(files[0].keys() | files[1].keys()):
        if name not in files[0] or name not in files[1]:
            yield f"{name} is {'missing' if name in files[0] else 'one too many'}"
        elif files[0][name] != files[1][name] and name != PARTITION_METADATA:
            yield f"{name} has other bytes"


def _loads(root: Path) -> Iterator[str]:
    """What Kafka finds when it opens the partition: after a clean shutdown, then after a crash."""
    found = [
        json.loads(kafka.run("recover", root, "t-0", "--clean", clean))
        for clean in ("true", "false")
    ]
    if found[0] != found[1]:
        yield f"Kafka recovers {found[1]}, but loads {found[0]}"


def check(seed: int, root: Path, load: bool) -> list[str]:
    """Everything that is wrong with one log; Kafka's stands in root/case/before."""
    write(random_appends(seed), root / "ours")
    problems = list(differences(root / "case/before/t-0", root / "ours/t-0"))
    return problems or (list(_loads(root / "ours")) if load else [])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="written_logs", description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, action="append", help="only this seed; may be repeated")
    args = parser.parse_args(arguments)
    seeds = args.seed or random.SystemRandom().sample(range(2**31), args.count)
    root = Path(tempfile.mkdtemp(prefix="written-logs-"))
    for seed in seeds:
        script_path = root / "cases" / str(seed) / "script.jsonl"
        script_path.parent.mkdir(parents=True)
        script_path.write_text("".join(f"{json.dumps(line)}\n" for line in random_appends(seed)))
    kafka.run("cases", root / "cases")
    failed = 0
    for number, seed in enumerate(seeds):
        (root / str(seed)).mkdir()
        (root / "cases" / str(seed)).rename(root / str(seed) / "case")
        problems = check(seed, root / str(seed), load=number < _LOADED)
        failed += bool(problems)
        for problem in problems:
            sys.stdout.write(f"seed {seed}: {problem} ({root / str(seed)})\n")
    sys.stdout.write(f"{len(seeds) - failed} written logs passed, {failed} failed\n")
    if not failed:
        shutil.rmtree(root)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
