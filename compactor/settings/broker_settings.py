"""Translate a broker's own settings to those of its topics: Kafka's names for the same thing. Pure.

A topic without a value of its own takes the broker's, which has another name, and for times several
with different units: the first of them that is set, wherever it is set, decides.
Source: Kafka, ServerTopicConfigSynonyms, AbstractKafkaConfig.extractLogConfigMap.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from compactor.errors import ConfigError
from storage.formats.kafka_settings import SETTINGS, Value, check_values

_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000

_Synonyms = tuple[tuple[str, int], ...]  # name of the broker's setting, its unit

SYNONYMS: Mapping[str, _Synonyms] = MappingProxyType(
    {
        "cleanup.policy": (("log.cleanup.policy", 1),),
        "compression.gzip.level": (("compression.gzip.level", 1),),
        "compression.lz4.level": (("compression.lz4.level", 1),),
        "compression.type": (("compression.type", 1),),
        "compression.zstd.level": (("compression.zstd.level", 1),),
        "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
        "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
        "flush.messages": (("log.flush.interval.messages", 1),),
        "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
        "index.interval.bytes": (("log.index.interval.bytes", 1),),
        "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
        "max.decompressed.message.bytes": (("max.decompressed.message.bytes", 1),),
        "max.message.bytes": (("message.max.bytes", 1),),
        "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
        "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
        "message.timestamp.type": (("log.message.timestamp.type", 1),),
        "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
        "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
        "preallocate": (("log.preallocate", 1),),
        "retention.bytes": (("log.retention.bytes", 1),),
        "retention.ms": (
            ("log.retention.ms", 1),
            ("log.retention.minutes", _MINUTE_MS),
            ("log.retention.hours", _HOUR_MS),
        ),
        "segment.bytes": (("log.segment.bytes", 1),),
        "segment.index.bytes": (("log.index.size.max.bytes", 1),),
        "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS)),
        "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS)),
    }
)


class Layer(NamedTuple):
    """Values that were set in one place, by names of topic configurations."""

    place: str  # for people
    values: Mapping[str, Value]


def layers_of(sources: Sequence[tuple[str, Mapping[str, str]]]) -> tuple[Layer, ...]:
    """Give what settings of a broker say of its topics, a layer for each place.

    sources: place and settings as written; of a name in several, the later counts.
    Raise ConfigError for a value that Kafka would not take.
    """
    merged = {name: (value, place) for place, values in sources for name, value in values.items()}
    found: dict[str, dict[str, str]] = {place: {} for place, _ in sources}
    for name, synonyms in SYNONYMS.items():
        for synonym, unit in synonyms:
            if synonym in merged:
                text, place = merged[synonym]
                found[place][name] = _in_ms(text, unit, f"{place}: {synonym}")
                break
    return tuple(Layer(place, check_values(values, place)) for place, values in found.items())


def known_values(raw: Mapping[str, str], place: str) -> dict[str, Value]:
    """Check those values that have a meaning for us; a cluster may have names of a later Kafka."""
    known = {name: raw[name] for name in raw if name in SETTINGS}
    try:
        return dict(_checked(tuple(known.items())))
    except ConfigError:
        return check_values(known, place)  # which says where


@lru_cache(maxsize=1024)
def _checked(values: tuple[tuple[str, str], ...]) -> dict[str, Value]:
    """Of thousands of topics most have the same few values."""
    return check_values(dict(values), "")


def _in_ms(text: str, unit: int, place: str) -> str:
    if unit == 1:
        return text
    try:
        number = int(text.strip())
    except ValueError as error:
        raise ConfigError(f"{place} = {text!r}: expected a whole number") from error
    return str(-1 if number < 0 else number * unit)
