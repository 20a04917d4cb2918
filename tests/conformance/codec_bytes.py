"""Payloads that the codecs of Kafka's jars and ours must compress to the same bytes.

python -m tests.conformance.codec_bytes [--count 200] [--first-seed N] [--record]

`ORACLE_KAFKA` names the Kafka. Where its zstd is of another build than ours, payloads that come out
otherwise are no fault. Exit 1 where any other does. --record writes what this Kafka makes of the
payloads of tests/storage/codecs/kafka_builds.json into that file.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from compactor.host.output import print_line
from storage.codecs.compression import compress
from tests.oracle import jars, kafka, versions
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


def _differing(seeds: Sequence[int]) -> Counter[str]:
    others = Counter[str]()
    for seed, kafkas in compressed_by_kafka(seeds):
        raw = payload(seed)
        for name, codec in CODECS.items():
            others[name] += compress(codec, raw) != kafkas[name]
    return others


def _record(release: str) -> None:
    made = [kafkas for _, kafkas in compressed_by_kafka(kafka_builds.SEEDS)]
    builds = kafka_builds.recorded() if kafka_builds.FILE.exists() else {}
    builds[release] = {name: kafka_builds.digest(each[name] for each in made) for name in CODECS}
    kafka_builds.FILE.write_text(json.dumps(builds, indent=2, sort_keys=True) + "\n")


def main(arguments: Sequence[str] = ()) -> int | str:
    parser = argparse.ArgumentParser(prog="codec_bytes", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--record", action="store_true", help="write kafka_builds.json")
    args = parser.parse_args(arguments)
    version = versions.chosen()
    try:
        if args.record:
            _record(version.release)
            return 0
        found = _differing(range(args.first_seed, args.first_seed + args.count))
    except jars.OracleUnavailableError as unavailable:
        return str(unavailable)
    ours = kafka_builds.ZSTD_HERE
    same_zstd = kafka_builds.ZSTD_OF[version.release] == ours
    told = ", ".join(f"{name} {count}" for name, count in found.items())
    builds = "the same build of zstd" if same_zstd else "another build of zstd"
    print_line(f"codecs of Kafka {version.release} ({builds}): of {args.count} differ {told}")
    return int(any(count for name, count in found.items() if name != "zstd" or same_zstd))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
