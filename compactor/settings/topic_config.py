"""Hold what cleaning needs to know of a topic, of the settings that somebody set for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from storage.errors import ConfigError
from storage.formats.kafka_settings import COMPACT, DELETE, SETTINGS, Value

# What a broker creates its own compacted topics with (C-20.4).
_OWN_TOPIC: Mapping[str, Value] = MappingProxyType(
    {"cleanup.policy": (COMPACT,), "segment.bytes": 104_857_600}
)
BROKER_TOPICS: Mapping[str, Mapping[str, Value]] = MappingProxyType(
    {"__consumer_offsets": _OWN_TOPIC, "__transaction_state": _OWN_TOPIC}
)


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """What cleaning needs to know of a topic."""

    cleanup_policy: tuple[str, ...] | None  # None: nobody said; empty: neither of the two
    policy_source: str  # what set it, for people
    min_cleanable_dirty_ratio: float
    delete_retention_ms: int
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    max_decompressed_message_bytes: int
    retention_ms: int  # negative: unlimited
    retention_bytes: int  # negative: unlimited

    @property
    def is_compacted(self) -> bool:
        return self.cleanup_policy is not None and COMPACT in self.cleanup_policy

    @property
    def has_retention(self) -> bool:
        return self.cleanup_policy is not None and DELETE in self.cleanup_policy


def topic_config(values: Mapping[str, Value], policy_source: str, place: str) -> TopicConfig:
    """Make a TopicConfig of checked values, with defaults for the rest.

    Raise ConfigError where two values contradict each other (C-20.3); place says whose they are.
    """

    def number(name: str) -> int:
        value = values.get(name, SETTINGS[name].default)
        assert isinstance(value, int), name
        return value

    policy = values.get("cleanup.policy")
    ratio = values.get("min.cleanable.dirty.ratio", SETTINGS["min.cleanable.dirty.ratio"].default)
    assert policy is None or isinstance(policy, tuple)
    assert isinstance(ratio, float)
    min_lag_ms, max_lag_ms = number("min.compaction.lag.ms"), number("max.compaction.lag.ms")
    if min_lag_ms > max_lag_ms:
        problem = f"min.compaction.lag.ms {min_lag_ms} is above max.compaction.lag.ms {max_lag_ms}"
        raise ConfigError(problem, place)
    return TopicConfig(
        cleanup_policy=policy,
        policy_source=policy_source,
        min_cleanable_dirty_ratio=ratio,
        delete_retention_ms=number("delete.retention.ms"),
        min_compaction_lag_ms=min_lag_ms,
        max_compaction_lag_ms=max_lag_ms,
        segment_bytes=number(
            "internal.segment.bytes" if "internal.segment.bytes" in values else "segment.bytes"
        ),
        segment_index_bytes=number("segment.index.bytes"),
        index_interval_bytes=number("index.interval.bytes"),
        max_decompressed_message_bytes=number("max.decompressed.message.bytes"),
        retention_ms=number("retention.ms"),
        retention_bytes=number("retention.bytes"),
    )
