"""Which builds of the codecs are installed, held against those that give a Kafka's bytes (V-5)."""

import cramjam
import zstandard

from storage.codecs.compression import Codec
from storage.kafka_versions import KafkaVersion


def differing_builds(kafka: KafkaVersion) -> dict[Codec, str]:
    """Give the codecs that compress to other bytes than a Kafka's own, and why, for people.

    A codec that is not in it gives that Kafka's bytes. gzip is the same in all of them.
    """
    zstd = ".".join(map(str, zstandard.ZSTD_VERSION))
    found = {}
    if zstd != kafka.codecs.zstd:
        found[Codec.ZSTD] = _text("libzstd", zstd, kafka.codecs.zstd, kafka)
    if cramjam.__version__ != kafka.codecs.cramjam:
        text = _text("cramjam", cramjam.__version__, kafka.codecs.cramjam, kafka)
        found |= {Codec.LZ4: text, Codec.SNAPPY: text}
    return found


def _text(library: str, installed: str, wanted: str, kafka: KafkaVersion) -> str:
    return f"{library} {installed} is installed, and Kafka {kafka.release}'s bytes are of {wanted}"
