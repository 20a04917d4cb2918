"""Topic configuration as Kafka names it: which names there are, what they take, their defaults.

The table is the one place for defaults and limits; conf/compactor.toml spells it out for people,
and a test holds the two together. Source: Kafka, TopicConfig, LogConfig; spec C-20.2 to C-20.4.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from compactor.errors import ConfigError
from compactor.json_types import json_text
from storage.kafka_versions import NO_RECORD_LIMIT, RECORD_LIMIT

Value = int | float | str | bool | tuple[str, ...]

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1

COMPACT = "compact"
DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Setting:
    """What one configuration name takes."""

    default: Value | None  # None: not set
    least: float | None = None  # both limits inclusive
    most: float | None = None
    choices: tuple[str, ...] = ()


def _int(default: int | None, least: int, most: int = MAX_INT) -> Setting:
    return Setting(default, least, most)


def _long(default: int, least: int = -MAX_LONG - 1) -> Setting:
    return Setting(default, least, MAX_LONG)


# Kafka takes no segment.bytes below 1 MiB since 4.0, and has internal.segment.bytes for tests; here
# both go down to 1, because logs of older brokers have smaller ones, and they only group segments.
CLEANING: Mapping[str, Setting] = MappingProxyType(
    {
        "cleanup.policy": Setting(None, choices=(COMPACT, DELETE)),
        "min.cleanable.dirty.ratio": Setting(0.5, 0, 1),
        "delete.retention.ms": _long(86_400_000, 0),
        "min.compaction.lag.ms": _long(0, 0),
        "max.compaction.lag.ms": _long(MAX_LONG, 1),
        "segment.bytes": _int(1_073_741_824, 1),
        "internal.segment.bytes": _int(None, 1),
        "segment.index.bytes": _int(10_485_760, 4),
        "index.interval.bytes": _int(4096, 0),
        RECORD_LIMIT: _int(NO_RECORD_LIMIT, 1, NO_RECORD_LIMIT),  # V-4
        "retention.ms": _long(604_800_000, -1),
        "retention.bytes": _long(-1),
    }
)

# Checked like the others, since a typing error in one may hide another, but without effect here.
_WITHOUT_EFFECT: Mapping[str, Setting] = MappingProxyType(
    {
        "segment.ms": _long(604_800_000, 1),
        "segment.jitter.ms": _long(0, 0),
        "max.message.bytes": _int(1_048_588, 0),
        "file.delete.delay.ms": _long(60_000, 0),
        "flush.messages": _long(MAX_LONG, 1),
        "flush.ms": _long(MAX_LONG, 0),
        "preallocate": Setting(False),
        "compression.type": Setting(
            "producer", choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
        ),
        "compression.gzip.level": Setting("-1", choices=("-1", *"123456789")),
        "compression.lz4.level": _int(9, 1, 17),
        "compression.zstd.level": _int(3, -131072, 22),
        "message.timestamp.type": Setting("CreateTime", choices=("CreateTime", "LogAppendTime")),
    }
)
SETTINGS: Mapping[str, Setting] = MappingProxyType({**CLEANING, **_WITHOUT_EFFECT})

# Names that `kafka-configs` lists for a topic, today or in an older release. Nothing here looks at
# their values.
KNOWN_ELSEWHERE = frozenset(
    {
        "errors.deadletterqueue.group.enable",
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "local.retention.bytes",
        "local.retention.ms",
        "message.downconversion.enable",
        "message.format.version",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.difference.max.ms",
        "min.insync.replicas",
        "remote.copy.lag.bytes",
        "remote.copy.lag.ms",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
        "unclean.leader.election.enable",
    }
)

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
        value = values.get(name, CLEANING[name].default)
        assert isinstance(value, int), name
        return value

    policy = values.get("cleanup.policy")
    ratio = values.get("min.cleanable.dirty.ratio", CLEANING["min.cleanable.dirty.ratio"].default)
    assert policy is None or isinstance(policy, tuple)
    assert isinstance(ratio, float)
    min_lag_ms, max_lag_ms = number("min.compaction.lag.ms"), number("max.compaction.lag.ms")
    if min_lag_ms > max_lag_ms:
        problem = f"min.compaction.lag.ms {min_lag_ms} is above max.compaction.lag.ms {max_lag_ms}"
        raise ConfigError(f"{place}: {problem}")
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


def value_text(value: Value) -> str:
    """A value as Kafka writes it."""
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def json_value(value: Value) -> object:
    """A value as JSON has it: a number, a text, true or false."""
    return value_text(value) if isinstance(value, tuple) else value


def check_values(raw: Mapping[str, object], place: str) -> dict[str, Value]:
    """Turn values as written (text, as kafka-configs has them, or typed) to values of their kind.

    Raise ConfigError for a name that Kafka does not have, and for a value that it would not take.
    """
    values = {}
    for name, value in raw.items():
        setting = SETTINGS.get(name)
        if setting is not None:
            values[name] = check_value(name, setting, value, place)
        elif name not in KNOWN_ELSEWHERE:
            raise ConfigError(f"{place}: no topic configuration is named {name!r}{_hint(name)}")
    return values


def check_value(name: str, setting: Setting, value: object, place: str) -> Value:
    """Turn one value as written to what its setting takes; ConfigError where it does not."""
    if name == "cleanup.policy":
        return _policy(value, place)
    if isinstance(setting.default, bool):
        return _boolean(name, value, place)
    if setting.choices:
        text = str(value).strip()
        if text not in setting.choices:
            raise ConfigError(_problem(place, name, value, f"one of {', '.join(setting.choices)}"))
        return text
    return _number(name, setting, value, place)


def _policy(value: object, place: str) -> tuple[str, ...]:
    members = value.split(",") if isinstance(value, str) else value
    if isinstance(members, list) and all(isinstance(member, str) for member in members):
        stripped = [member.strip() for member in members]
        policy = tuple(sorted({member for member in stripped if member}))
        if all(member in (COMPACT, DELETE) for member in policy):
            return policy
    expected = "compact, delete, both with a comma, or nothing"
    raise ConfigError(_problem(place, "cleanup.policy", value, expected))


def _boolean(name: str, value: object, place: str) -> bool:
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise ConfigError(_problem(place, name, value, "true or false"))
    return text == "true"


def _number(name: str, setting: Setting, value: object, place: str) -> int | float:
    kind = float if isinstance(setting.default, float) else int
    expected = f"{'a number' if kind is float else 'a whole number'} {_limits(setting)}"
    typed = isinstance(value, (int, kind)) and not isinstance(value, bool)
    if not typed and not isinstance(value, str):
        raise ConfigError(_problem(place, name, value, expected))
    try:
        number = kind(str(value).strip().replace("_", "?"))  # int("1_000") is Python's, not Kafka's
    except ValueError as error:
        raise ConfigError(_problem(place, name, value, expected)) from error
    assert setting.least is not None and setting.most is not None, name
    if not setting.least <= number <= setting.most:  # no NaN passes either
        raise ConfigError(_problem(place, name, value, expected))
    return number


def _limits(setting: Setting) -> str:
    if setting.most in (MAX_INT, MAX_LONG):
        bits = 32 if setting.most == MAX_INT else 64
        return f"from {setting.least} up, of {bits} bits"
    return f"from {setting.least} to {setting.most}"


def _problem(place: str, name: str, value: object, expected: str) -> str:
    return f"{place}: {name} = {json_text(value)}: expected {expected}"


def _hint(name: str) -> str:
    """Suggest a name that is nearly the one given, or Kafka's other spelling of it."""
    import difflib  # only on the way to an error

    near = difflib.get_close_matches(name, [*SETTINGS, *KNOWN_ELSEWHERE], 1)
    return f"; did you mean {near[0]}?" if near else ""
