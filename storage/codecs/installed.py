"""Which builds of the codecs are installed, held against those that give a Kafka's bytes (V-5)."""

from collections.abc import Iterator

import cramjam
import zstandard

from storage.codecs.compression import Codec
from storage.kafka_versions import CodecBuilds, KafkaVersion


def builds_here() -> CodecBuilds:
    """Those of this process."""
    return CodecBuilds(".".join(map(str, zstandard.ZSTD_VERSION)), cramjam.__version__)


def differing_builds(kafka: KafkaVersion, builds: CodecBuilds) -> dict[Codec, str]:
    """Give the codecs that compress to other bytes than a Kafka's own, and why, for people.

    builds: of whoever compresses. A codec that is not in the answer gives that Kafka's bytes. gzip
    is the same in all of them.
    """
    found = {}
    if builds.zstd != kafka.codecs.zstd:
        found[Codec.ZSTD] = _text("libzstd", builds.zstd, kafka.codecs.zstd, kafka)
    if builds.cramjam != kafka.codecs.cramjam:
        text = _text("cramjam", builds.cramjam, kafka.codecs.cramjam, kafka)
        found |= {Codec.LZ4: text, Codec.SNAPPY: text}
    return found


def build_notes(kafka: KafkaVersion, codecs: int, builds: CodecBuilds) -> Iterator[str]:
    """Say which of these codecs have another build than that of a Kafka, and which.

    codecs: a bit for each, 1 << its id.
    """
    where = "" if builds == builds_here() else ", on an executor"
    for codec, why in differing_builds(kafka, builds).items():
        if codecs & 1 << codec:
            yield f"{codec.name.lower()} of another build: {why}{where}"


def _text(library: str, installed: str, wanted: str, kafka: KafkaVersion) -> str:
    return f"{library} {installed} is installed, and Kafka {kafka.release}'s bytes are of {wanted}"
