"""The settings of a topic, by Kafka's names: type, default, limits, and what each decides here.

One table for both clients: what cleans a log, and what appends to it. conf/compactor.toml spells it
out for people, and a test holds the two together. Where only some versions of Kafka have a setting,
`kafka_versions.has_setting` says which. Source: Kafka, TopicConfig, LogConfig; spec C-20.2, L-29.
"""

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import NamedTuple

from storage.errors import ConfigError, json_text
from storage.kafka_versions import NO_RECORD_LIMIT, RECORD_LIMIT

Value = int | float | str | bool | tuple[str, ...]

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1
_DAY_MS = 86_400_000

COMPACT = "compact"
DELETE = "delete"


class Effect(Enum):
    """What a setting decides."""

    CLEANING = auto()  # how a log is cleaned, and what becomes of one that is appended to
    APPENDING = auto()  # the latter alone


class Type(Enum):
    """Kafka's types of settings, of which a value is read."""

    INT = auto()
    LONG = auto()
    DOUBLE = auto()
    BOOLEAN = auto()
    STRING = auto()
    LIST = auto()


class KafkaSetting(NamedTuple):
    """What one configuration name takes."""

    type: Type
    effect: Effect
    default: Value | None  # None: not set
    least: float | None = None  # of a number, both limits inclusive
    most: float | None = None
    choices: tuple[str, ...] = ()


def int_setting(
    effect: Effect, default: int | None, least: int, most: int = MAX_INT
) -> KafkaSetting:
    """Return a setting of 32 bits."""
    return KafkaSetting(type=Type.INT, effect=effect, default=default, least=least, most=most)


def _long(effect: Effect, default: int, least: int = -MAX_LONG - 1) -> KafkaSetting:
    return KafkaSetting(type=Type.LONG, effect=effect, default=default, least=least, most=MAX_LONG)


def _words(effect: Effect, default: str, choices: tuple[str, ...]) -> KafkaSetting:
    return KafkaSetting(type=Type.STRING, effect=effect, default=default, choices=choices)


_CLEANING, _APPENDING = Effect.CLEANING, Effect.APPENDING
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_LEVEL_OF_GZIP = KafkaSetting(  # kept as text
    type=Type.INT, effect=_APPENDING, default="-1", least=-1, most=9, choices=("-1", *"123456789")
)
# Kafka takes no segment.bytes below 1 MiB since 4.0, and has internal.segment.bytes for tests; here
# it goes down to 1, because logs of older brokers have smaller ones, and it only groups segments.
SETTINGS: Mapping[str, KafkaSetting] = MappingProxyType(
    {
        "cleanup.policy": KafkaSetting(
            type=Type.LIST, effect=_CLEANING, default=None, choices=(COMPACT, DELETE)
        ),
        "min.cleanable.dirty.ratio": KafkaSetting(
            type=Type.DOUBLE, effect=_CLEANING, default=0.5, least=0, most=1
        ),
        "delete.retention.ms": _long(_CLEANING, _DAY_MS, 0),
        "min.compaction.lag.ms": _long(_CLEANING, 0, 0),
        "max.compaction.lag.ms": _long(_CLEANING, MAX_LONG, 1),
        "segment.bytes": int_setting(_CLEANING, 2**30, 1),
        "internal.segment.bytes": int_setting(_CLEANING, None, -MAX_INT - 1),
        "segment.index.bytes": int_setting(_CLEANING, 10 * 2**20, 4),
        "index.interval.bytes": int_setting(_CLEANING, 4096, 0),
        RECORD_LIMIT: int_setting(_CLEANING, NO_RECORD_LIMIT, 1, NO_RECORD_LIMIT),  # V-4
        "retention.ms": _long(_CLEANING, 7 * _DAY_MS, -1),
        "retention.bytes": _long(_CLEANING, -1),
        "segment.ms": _long(_APPENDING, 7 * _DAY_MS, 1),
        "segment.jitter.ms": _long(_APPENDING, 0, 0),
        "max.message.bytes": int_setting(_APPENDING, 2**20 + 12, 0),
        "file.delete.delay.ms": _long(_APPENDING, 60_000, 0),
        "flush.messages": _long(_APPENDING, MAX_LONG, 1),
        "flush.ms": _long(_APPENDING, MAX_LONG, 0),
        "preallocate": KafkaSetting(type=Type.BOOLEAN, effect=_APPENDING, default=False),
        "compression.type": _words(_APPENDING, "producer", _CODECS),
        "compression.gzip.level": _LEVEL_OF_GZIP,
        "compression.lz4.level": int_setting(_APPENDING, 9, 1, 17),
        "compression.zstd.level": int_setting(_APPENDING, 3, -131072, 22),
        "message.timestamp.type": _words(_APPENDING, "CreateTime", ("CreateTime", "LogAppendTime")),
        "message.timestamp.after.max.ms": _long(_APPENDING, 3_600_000, 0),
        "message.timestamp.before.max.ms": _long(_APPENDING, MAX_LONG, 0),
    }
)

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


def value_text(value: Value) -> str:
    """A value as Kafka writes it."""
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def json_value(value: Value) -> int | float | str | bool:
    """A value as JSON has it: a number, a text, true or false."""
    return value_text(value) if isinstance(value, tuple) else value


def check_values(raw: Mapping[str, object], place: str) -> dict[str, Value]:
    """Turn values as written (text, as kafka-configs has them, or typed) to values of their kind.

    place: where they stand, for people; empty where nothing else says it. Raise ConfigError for a
    name that Kafka does not have, and for a value that it would not take.
    """
    values = {}
    for name, value in raw.items():
        setting = SETTINGS.get(name)
        if setting is not None:
            values[name] = check_value(name, setting, value, place)
        elif name not in KNOWN_ELSEWHERE:
            raise ConfigError(f"no topic configuration is named {name!r}{_hint(name)}", place)
    return values


def check_value(name: str, setting: KafkaSetting, value: object, place: str) -> Value:
    """Turn one value as written to what its setting takes; ConfigError where it does not."""
    match setting.type:
        case Type.LIST:
            return _policy(value, place)
        case Type.BOOLEAN:
            return _boolean(name, value, place)
        case Type.STRING:
            return _word(name, setting, value, str(value).strip(), place)
    number = _number(name, setting, value, place)
    return _word(name, setting, value, str(number), place) if setting.choices else number


def _policy(value: object, place: str) -> tuple[str, ...]:
    members = value
    if isinstance(value, str):
        members = value.split(",") if value.strip() else []
    if isinstance(members, list) and all(isinstance(member, str) for member in members):
        policy = tuple(sorted({member.strip() for member in members}))
        if all(member in (COMPACT, DELETE) for member in policy):
            return policy
    expected = "compact, delete, both with a comma, or nothing"
    raise _unfit("cleanup.policy", value, expected, place)


def _word(name: str, setting: KafkaSetting, value: object, text: str, place: str) -> str:
    if text not in setting.choices:
        raise _unfit(name, value, f"one of {', '.join(setting.choices)}", place)
    return text


def _boolean(name: str, value: object, place: str) -> bool:
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise _unfit(name, value, "true or false", place)
    return text == "true"


def _number(name: str, setting: KafkaSetting, value: object, place: str) -> int | float:
    kind = float if setting.type is Type.DOUBLE else int
    expected = f"{'a number' if kind is float else 'a whole number'} {_limits(setting)}"
    typed = isinstance(value, (int, kind)) and not isinstance(value, bool)
    if not typed and not isinstance(value, str):
        raise _unfit(name, value, expected, place)
    try:
        number = kind(str(value).strip().replace("_", "?"))  # int("1_000") is Python's, not Kafka's
    except ValueError:
        raise _unfit(name, value, expected, place) from None
    assert setting.least is not None and setting.most is not None, name
    if not setting.least <= number <= setting.most:  # no NaN passes either
        raise _unfit(name, value, expected, place)
    return number


def _limits(setting: KafkaSetting) -> str:
    if setting.most in (MAX_INT, MAX_LONG):
        bits = 32 if setting.type is Type.INT else 64
        return f"from {setting.least} up, of {bits} bits"
    return f"from {setting.least} to {setting.most}"


def _unfit(name: str, value: object, expected: str, place: str) -> ConfigError:
    return ConfigError(f"{name} = {json_text(value)}: expected {expected}", place)


def _hint(name: str) -> str:
    """Suggest a name that is nearly the one given, or Kafka's other spelling of it."""
    import difflib  # only on the way to an error

    near = difflib.get_close_matches(name, [*SETTINGS, *KNOWN_ELSEWHERE], 1)
    return f"; did you mean {near[0]}?" if near else ""
