"""The configuration of a topic, as far as its log has need of it.

Source: Kafka, LogConfig; spec L-29, C-20.2.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from storage.codecs.compression import DEFAULT_LEVELS, Codec
from storage.formats.kafka_settings import SETTINGS, Effect, Value, check_values


def _default(name: str) -> Any:
    return SETTINGS[name].default


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Each field is the setting of its name, with points for underscores."""

    cleanup_policy: str = "delete"
    compression_type: str = _default("compression.type")
    compression_gzip_level: int = int(_default("compression.gzip.level"))
    compression_lz4_level: int = _default("compression.lz4.level")
    compression_zstd_level: int = _default("compression.zstd.level")
    delete_retention_ms: int = _default("delete.retention.ms")
    file_delete_delay_ms: int = _default("file.delete.delay.ms")
    flush_messages: int = _default("flush.messages")
    flush_ms: int = _default("flush.ms")
    index_interval_bytes: int = _default("index.interval.bytes")
    max_compaction_lag_ms: int = _default("max.compaction.lag.ms")
    max_decompressed_message_bytes: int = _default(
        "max.decompressed.message.bytes"
    )  # for a cleaner (V-4)
    max_message_bytes: int = _default("max.message.bytes")
    message_timestamp_after_max_ms: int = _default("message.timestamp.after.max.ms")
    message_timestamp_before_max_ms: int = _default("message.timestamp.before.max.ms")
    message_timestamp_type: str = _default("message.timestamp.type")
    min_cleanable_dirty_ratio: float = _default("min.cleanable.dirty.ratio")
    min_compaction_lag_ms: int = _default("min.compaction.lag.ms")
    preallocate: bool = _default("preallocate")
    retention_bytes: int = _default("retention.bytes")
    retention_ms: int = _default("retention.ms")
    segment_bytes: int = _default("segment.bytes")
    segment_index_bytes: int = _default("segment.index.bytes")
    segment_jitter_ms: int = _default("segment.jitter.ms")
    segment_ms: int = _default("segment.ms")

    def changed(self, settings: Mapping[str, object]) -> Self:
        """Take settings by Kafka's names. ConfigError, and nothing else, where one is wrong."""
        return self.with_values(check_values(settings, ""))

    def with_values(self, values: Mapping[str, Value]) -> Self:
        """Take checked values by Kafka's names."""
        fields: dict[str, Any] = {_field(name): value for name, value in values.items()}
        if "internal_segment_bytes" in fields:  # it wins
            fields["segment_bytes"] = fields.pop("internal_segment_bytes")
        if "cleanup_policy" in fields:
            fields["cleanup_policy"] = ",".join(fields["cleanup_policy"])
        if "compression_gzip_level" in fields:
            fields["compression_gzip_level"] = int(fields["compression_gzip_level"])
        return replace(self, **fields)

    def for_cleaning(self) -> dict[str, object]:
        """Give the settings that decide how a log is cleaned, by Kafka's names."""
        values: dict[str, object] = {
            name: getattr(self, _field(name))
            for name, setting in SETTINGS.items()
            if setting.effect is Effect.CLEANING and name != "internal.segment.bytes"
        }
        return values | {"internal.segment.bytes": values.pop("segment.bytes")}

    @property
    def compression_level(self) -> int | None:
        """The level at which the log compresses; None: the codec's default.

        The levels of codecs other than that of `compression.type` have no effect.
        """
        levels = {
            "gzip": (Codec.GZIP, self.compression_gzip_level),
            "lz4": (Codec.LZ4, self.compression_lz4_level),
            "zstd": (Codec.ZSTD, self.compression_zstd_level),
        }
        codec, level = levels.get(self.compression_type, (Codec.NONE, None))
        return None if level == DEFAULT_LEVELS.get(codec) else level

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy.split(",")

    @property
    def is_deleted(self) -> bool:
        """Whether retention by size and time applies."""
        return "delete" in self.cleanup_policy.split(",")

    @property
    def is_log_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def max_segment_ms(self) -> int:
        """The age at which a segment is rolled (C-4.8)."""
        if self.is_compacted:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms

    def drawn_jitter_ms(self) -> int:
        """Draw how much earlier than others one segment is rolled by its age.

        That is another number each time, so that the segments of many logs are not rolled at once.
        """
        if not self.segment_jitter_ms:
            return 0
        return random.randrange(min(self.segment_jitter_ms, self.segment_ms))

    @property
    def initial_log_bytes(self) -> int:
        return self.segment_bytes if self.preallocate else 0


def _field(name: str) -> str:
    return name.replace(".", "_")
