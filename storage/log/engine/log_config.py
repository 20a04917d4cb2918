"""The configuration of a topic, as far as its log has need of it: Kafka's names and defaults.

Source: Kafka, LogConfig; spec L-29, C-20.2.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from storage.codecs.compression import DEFAULT_LEVELS, Codec
from storage.kafka_versions import NO_RECORD_LIMIT
from storage.log.engine.errors import ConfigError

_DAY_MS = 24 * 60 * 60 * 1000
_MAX_LONG = 2**63 - 1
_MAX_INT = 2**31 - 1
CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Each field is the setting of its name, with points for underscores."""

    cleanup_policy: str = "delete"
    compression_type: str = "producer"
    compression_gzip_level: int = DEFAULT_LEVELS[Codec.GZIP]
    compression_lz4_level: int = DEFAULT_LEVELS[Codec.LZ4]
    compression_zstd_level: int = DEFAULT_LEVELS[Codec.ZSTD]
    delete_retention_ms: int = _DAY_MS
    file_delete_delay_ms: int = 60_000
    flush_messages: int = _MAX_LONG
    flush_ms: int = _MAX_LONG
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = _MAX_LONG
    max_decompressed_message_bytes: int = NO_RECORD_LIMIT  # for a cleaner (V-4)
    max_message_bytes: int = 1024 * 1024 + 12
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = _MAX_LONG
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    preallocate: bool = False
    retention_bytes: int = -1
    retention_ms: int = 7 * _DAY_MS
    segment_bytes: int = 1024 * 1024 * 1024
    segment_index_bytes: int = 10 * 1024 * 1024
    segment_jitter_ms: int = 0
    segment_ms: int = 7 * _DAY_MS

    def changed(self, settings: Mapping[str, str]) -> Self:
        """Take settings by Kafka's names. ConfigError, and nothing else, where one is wrong."""
        values: dict[str, Any] = {}
        for name, text in settings.items():
            field = name.replace(".", "_")
            if field not in _READERS:
                raise ConfigError(f"no topic configuration is named {name}")
            values[field] = _READERS[field](name, text)
        return replace(self, **values)

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
        """How old a segment becomes before it is rolled (C-4.8)."""
        if self.is_compacted:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms

    def drawn_jitter_ms(self) -> int:
        """How much earlier than others one segment is rolled by its age; another number each
        time, so that the segments of many logs are not rolled at once."""
        if not self.segment_jitter_ms:
            return 0
        return random.randrange(min(self.segment_jitter_ms, self.segment_ms))

    @property
    def initial_log_bytes(self) -> int:
        return self.segment_bytes if self.preallocate else 0


_Reader = Callable[[str, str], object]


def _integer(lowest: int, highest: int = _MAX_LONG) -> _Reader:
    def read(name: str, text: str) -> int:
        try:
            value = int(text.strip())
        except ValueError:
            raise ConfigError(f"{name} = {text!r} is not a number") from None
        if not lowest <= value <= highest:
            raise ConfigError(f"{name} = {value} is not in {lowest} to {highest}")
        return value

    return read


def _gzip_level(name: str, text: str) -> int:
    level = _integer(-1, 9)(name, text)
    if not level:
        raise ConfigError(f"{name} = 0 is neither -1 nor in 1 to 9")
    assert isinstance(level, int)
    return level


def _one_of(*choices: str) -> _Reader:
    def read(name: str, text: str) -> str:
        if text not in choices:
            raise ConfigError(f"{name} = {text!r} is none of {', '.join(choices)}")
        return text

    return read


def _ratio(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ConfigError(f"{name} = {text!r} is not a number") from None
    if not 0 <= value <= 1:
        raise ConfigError(f"{name} = {value} is not in 0 to 1")
    return value


def _policy(name: str, text: str) -> str:
    members = [member.strip() for member in text.split(",")] if text.strip() else []
    if not set(members) <= {"compact", "delete"}:
        raise ConfigError(f"{name} = {text!r} is not made of compact and delete")
    return ",".join(members)


def _boolean(name: str, text: str) -> bool:
    found = {"true": True, "false": False}.get(text.strip().lower())
    if found is None:
        raise ConfigError(f"{name} = {text!r} is neither true nor false")
    return found


_READERS: dict[str, _Reader] = {
    **{field.name: _integer(0) for field in fields(LogConfig)},
    "cleanup_policy": _policy,
    "compression_type": _one_of(*CODECS),
    "compression_gzip_level": _gzip_level,
    "compression_lz4_level": _integer(1, 17),
    "compression_zstd_level": _integer(-131072, 22),
    "flush_messages": _integer(1),
    "max_compaction_lag_ms": _integer(1),
    "max_decompressed_message_bytes": _integer(1, NO_RECORD_LIMIT),
    "max_message_bytes": _integer(0, _MAX_INT),
    "message_timestamp_type": _one_of("CreateTime", "LogAppendTime"),
    "min_cleanable_dirty_ratio": _ratio,
    "preallocate": _boolean,
    "index_interval_bytes": _integer(0, _MAX_INT),
    "retention_bytes": _integer(-(2**63)),
    "retention_ms": _integer(-1),
    "segment_bytes": _integer(-(2**31), _MAX_INT),  # as internal.segment.bytes, of any size
    "segment_index_bytes": _integer(4, _MAX_INT),
    "segment_ms": _integer(1),
}
