"""Payloads that the codecs of Kafka's jars and ours must compress to the same bytes.

`ORACLE_KAFKA` names the Kafka.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from storage.codecs.compression import compress
from tests.campaign import Case, Tried
from tests.oracle import kafka, versions
from tests.storage.codecs import kafka_builds
from tests.storage.codecs.kafka_builds import CODECS, payload

COUNT = 200
A_FOLDER = 100


def compressed_by_kafka(seeds: Sequence[int]) -> Iterator[tuple[int, dict[str, bytes]]]:
    """What the chosen Kafka makes of the payload of each seed, by codec."""
    for at in range(0, len(seeds), A_FOLDER):
        some = seeds[at : at + A_FOLDER]
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            for seed in some:
                (folder / f"{seed}.raw").write_bytes(payload(seed))
            kafka.run("compressed", folder)
            for seed in some:
                yield seed, {name: (folder / f"{seed}.{name}").read_bytes() for name in CODECS}


def cases(first_seed: int, group: str) -> Iterator[Case]:
    """Yield payloads, a folder of them at a time."""
    for first in range(first_seed, first_seed + COUNT, A_FOLDER):
        seeds = range(first, first + A_FOLDER)
        yield Case(f"payloads from {first}", partial(_tried, seeds), group)


def _tried(seeds: Sequence[int]) -> Tried:
    """Where the zstd of the chosen Kafka is of another build than ours, its bytes may differ."""
    release = versions.chosen().release
    same_zstd = kafka_builds.ZSTD_OF[release] == kafka_builds.ZSTD_HERE
    counts, problems = Counter[str](), list[str]()
    for seed, kafkas in compressed_by_kafka(seeds):
        raw = payload(seed)
        for name, codec in CODECS.items():
            if compress(codec, raw) != kafkas[name]:
                counts[f"payloads differ from Kafka {release} in {name}"] += 1
                if name != "zstd" or same_zstd:
                    problems.append(f"payload {seed} differs in {name}")
    return Tried(problems, counts, cases=len(seeds))


def record() -> Tried:
    """Write what the chosen Kafka makes of the payloads of kafka_builds.json into that file."""
    release = versions.chosen().release
    made = [kafkas for _, kafkas in compressed_by_kafka(kafka_builds.SEEDS)]
    builds = kafka_builds.recorded() if kafka_builds.FILE.exists() else {}
    builds[release] = {name: kafka_builds.digest(each[name] for each in made) for name in CODECS}
    kafka_builds.FILE.write_text(json.dumps(builds, indent=2, sort_keys=True) + "\n")
    return Tried(line=f"recorded: {release}")
