"""Payloads, and what the codecs of each Kafka's jars make of them.

`kafka_builds.json` has a digest by release and codec, over all of `SEEDS`. Kafka wrote it: python
-m tests.conformance --record, once for each release.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from random import Random

import zstandard

from storage.codecs.compression import Codec
from tests.storage.codecs.random_data import random_data

FILE = Path(__file__).with_name("kafka_builds.json")
CODECS = {codec.name.lower(): codec for codec in Codec if codec is not Codec.NONE}
SIZES = (300, 5000, 65536, 100_000, 131_072, 131_073, 400_000)
SEEDS = range(1, 25)
ZSTD_OF = {"4.1.2": "1.5.6", "4.2.2": "1.5.6", "4.3.1": "1.5.6", "4.4.0": "1.5.7"}  # its zstd-jni
ZSTD_HERE = ".".join(map(str, zstandard.ZSTD_VERSION))


def payload(seed: int) -> bytes:
    return random_data(Random(seed), SIZES)


def digest(payloads: Iterable[bytes]) -> str:
    whole = hashlib.sha256()
    for each in payloads:
        whole.update(len(each).to_bytes(4, "big") + each)
    return whole.hexdigest()


def recorded() -> dict[str, dict[str, str]]:
    """Digest by release and codec."""
    builds: dict[str, dict[str, str]] = json.loads(FILE.read_text())
    return builds
