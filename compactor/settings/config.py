"""Load settings of a round: the broker's, a TOML file, `--topic-configs`, flags; the later wins.

But for cleanup.policy: what `--topic-configs` says of a topic counts, and no flag compacts a topic
whose own entry in the metadata log does not. Where these two disagree, the topic is set aside.
`[defaults]` of the TOML file are for topics that say nothing themselves.

The TOML file is laid out as conf/compactor.toml, which explains every setting. Nothing needs a
file: the defaults are in the code (`compactor.settings.topic_config`, and this module).

`--topic-configs` takes JSON, or the text that Kafka's own tools print:

    All configs for topic orders are:                                   kafka-configs --describe
      cleanup.policy=compact sensitive=false synonyms={…}

    Topic: orders  TopicId: …  Configs: cleanup.policy=compact,…         kafka-topics --describe

Source: Kafka, ConfigCommand.describeResourceConfig, TopicCommand.TopicDescription.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from typing import Any

from compactor.errors import ConfigError
from compactor.host.suggestions import near_path
from compactor.json_types import json_text
from compactor.reason_codes import Reason
from compactor.settings.broker_settings import Layer, known_values
from compactor.settings.cluster_settings import BROKER_SETTINGS, ClusterSettings
from compactor.settings.rules import Rules
from compactor.settings.topic_config import BROKER_TOPICS, TopicConfig, topic_config
from storage.files.local import LOCAL
from storage.formats.kafka_settings import (
    COMPACT,
    SETTINGS,
    Value,
    check_value,
    check_values,
    value_text,
)
from storage.formats.producer_snapshot import EXPIRATION_MS
from storage.kafka_versions import BY_NAME, NAMES, NOBODY_SAYS, KafkaChoice

CLOCKS_DIFFER_MS = 5 * 60_000  # those of two hosts, at most
_ROUND_KEYS = ("include", "exclude", "assume_fully_replicated", "kafka")
_TABLES = ("defaults", "topics", "broker", "round")
_HEADING = re.compile(r"(?:All|Dynamic) configs for topic (\S+) are:")
_SETTING = re.compile(r"  (\S+?)=(.*?) sensitive=(?:true|false) synonyms=\{")
_BEGINS_A_SETTING = re.compile(r"  [a-z0-9._-]+(=|$)")
_TOPIC = re.compile(r"Topic: (\S+)\s.*?\bConfigs: ?(.*)")
_NEXT_SETTING = re.compile(r",(?=[a-z0-9.]+=)")  # a value may have a comma: compact,delete


_ANY_CLOCK = Rules(any_clock=True)


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """Values for all topics whose whole name a regular expression matches."""

    match: re.Pattern[str]
    values: Mapping[str, Value]
    place: str  # where it stands, for people


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of a round, checked. Topic values are in the order in which the later wins."""

    cluster: ClusterSettings | None = None  # what the broker's own files say
    defaults: Mapping[str, Value] = field(default_factory=dict)
    defaults_place: str = "[defaults]"
    patterns: tuple[TopicPattern, ...] = ()
    topics: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    topics_place: str = "--topic-configs"  # where they stand, for people
    overrides: Mapping[str, Value] = field(default_factory=dict)
    producer_id_expiration_ms: int = EXPIRATION_MS
    include: re.Pattern[str] | None = None  # over whole names of topics; None: every one
    exclude: re.Pattern[str] | None = None  # wins over include
    include_place: str = "include"  # where each stands: a parameter, or a place in a file
    exclude_place: str = "exclude"
    assume_fully_replicated: bool = False  # the high watermark is the log end offset (C-23.2)
    rules: Rules = _ANY_CLOCK  # what the caller says beside
    kafka: KafkaChoice = NOBODY_SAYS  # whose answer is given
    # of a saved plan: how far each log may be cleaned, by directory, topic, partition; no other is
    ceilings: Mapping[tuple[str, str, int], int] | None = None

    def topic(self, name: str) -> TopicConfig:
        """Give the configuration of one topic; ConfigError where its values do not go together."""
        values: dict[str, Value] = {}
        policy_source = ""
        for place, layer in self.layers(name):
            values.update(layer)
            if "cleanup.policy" in layer:
                policy_source = place
        return topic_config(values, policy_source, f"topic {name}")

    def why_policy_is_unproven(self, topic: str) -> Reason | None:
        """Say why the metadata log does not prove a policy that only it has; None: it is known."""
        unproven = None if self.cluster is None else self.cluster.doubt
        if unproven is None or self.is_policy_named(topic):
            return None
        return unproven

    def is_policy_named(self, topic: str) -> bool:
        """Say whether somebody has named this topic's policy beside the metadata log."""
        by_name = {"--topic-configs", "--set", *(pattern.place for pattern in self.patterns)}
        return self.topic(topic).policy_source in by_name

    def values(self, name: str) -> dict[str, Value]:
        """Give what the layers say of one topic, by Kafka's names; nothing for a default."""
        return {key: value for _, layer in self.layers(name) for key, value in layer.items()}

    def is_wanted(self, topic: str) -> bool:
        """Say whether the filters leave a topic in."""
        if self.include is not None and not self.include.fullmatch(topic):
            return False
        return self.exclude is None or not self.exclude.fullmatch(topic)

    def policy_disagreement(self, topic: str) -> str | None:
        """Say which two cleanup policies are named for the topic itself; None if they agree.

        Both sources speak for this topic alone, and the older one would decide what is removed. It
        does not matter between two policies that do not compact: nothing is removed by either.
        """
        of_file = self.topics.get(topic, {}).get("cleanup.policy")
        if self.cluster is None or self.cluster.metadata is None or self._is_trusted(topic):
            return None
        own = self.cluster.topic_layer(topic).values.get("cleanup.policy")
        if not isinstance(of_file, tuple) or not isinstance(own, tuple) or of_file == own:
            return None
        if COMPACT not in (*of_file, *own):
            return None
        return (
            f"cleanup.policy is {value_text(of_file) or 'empty'} in {self.topics_place}, and "
            f"{value_text(own) or 'empty'} in the topic's own entry in the metadata log, "
            f"{self.cluster.metadata.path}"
        )

    def is_compacted_by_file_alone(self, topic: str) -> bool:
        """Say whether --topic-configs compacts a topic that the metadata log has without a policy.

        It is `delete` then by all that is known: an entry of the topic may have been removed since.
        A broker may have another default in a file that is not among these, so this is for people.
        """
        of_file = self.topics.get(topic, {}).get("cleanup.policy")
        if not isinstance(of_file, tuple) or COMPACT not in of_file or self.cluster is None:
            return False
        metadata = self.cluster.metadata
        if metadata is None or topic not in metadata.topics or self._is_trusted(topic):
            return False
        layers = (*self.cluster.layers, self.cluster.topic_layer(topic))
        known = (each.values.get("cleanup.policy") for each in layers)
        policies = [policy for policy in known if isinstance(policy, tuple)]
        return bool(policies) and COMPACT not in policies[-1]

    def other_disagreements(self, topic: str) -> Iterator[str]:
        """Yield each other setting of a topic that --topic-configs and its own entry both have."""
        of_file = self.topics.get(topic)
        if not of_file or self.cluster is None or self.cluster.metadata is None:
            return
        own = self.cluster.topic_layer(topic).values
        for name in sorted(of_file.keys() & own.keys() - {"cleanup.policy"}):
            if of_file[name] != own[name]:
                values = f"{value_text(of_file[name])}, not {value_text(own[name])}"
                yield f"{name} of {topic} ({values})"

    def _is_trusted(self, topic: str) -> bool:
        """Say whether --topic-configs decides for a topic against the metadata log."""
        return topic in self.rules.trust_topic_configs

    def layers(self, topic: str) -> Iterator[Layer]:
        """Yield place and values of every layer that says something of a topic; the last wins."""
        own = self.topics.get(topic, {})
        policies_that_stand = [own]
        if self.cluster is not None:
            yield from self.cluster.layers
        yield Layer(self.defaults_place, self.defaults)
        if self.cluster is None or self.cluster.metadata is None:
            yield Layer("Kafka's own for this topic", BROKER_TOPICS.get(topic, {}))
        else:
            set_itself = self.cluster.topic_layer(topic)
            yield set_itself
            policy = set_itself.values.get("cleanup.policy")
            if isinstance(policy, tuple) and COMPACT not in policy:
                policies_that_stand.append(set_itself.values)
        for pattern in self.patterns:
            if pattern.match.fullmatch(topic):
                yield Layer(pattern.place, _beside(pattern.values, policies_that_stand[1:]))
        yield Layer("--topic-configs", own)
        yield Layer("--set", _beside(self.overrides, policies_that_stand))


def load_config(
    config_path: str | None = None,
    topic_configs: str | Mapping[str, Mapping[str, Any]] | None = None,
    settings: Mapping[str, str] | None = None,
    cluster: ClusterSettings | None = None,
) -> Config:
    """Read the files of a command for one broker, and put its settings on top."""
    return load_configs(config_path, topic_configs, settings, [cluster])[0]


def load_configs(
    config_path: str | None,
    topic_configs: str | Mapping[str, Mapping[str, Any]] | None,
    settings: Mapping[str, str] | None,
    clusters: Sequence[ClusterSettings | None],
) -> list[Config]:
    """Read the files of a command, once, and put the settings of the command line on top.

    clusters: what is known of each broker, for a configuration each.
    topic_configs: a file, or what it would contain.
    settings: names of topic configurations, then set for every topic, or of the broker's settings.
    Raise ConfigError, with file and name, for whatever is unreadable, unknown or impossible.
    """
    toml = None if config_path is None else (_read(config_path), config_path)
    topics: Mapping[str, Mapping[str, Value]] = {}
    if isinstance(topic_configs, str):
        topics = parse_topic_configs(_read(topic_configs), topic_configs)
    elif topic_configs is not None:
        topics = _checked_topics(topic_configs, "topic_configs")
    configs = [_config_of(cluster, toml, topics, settings or {}) for cluster in clusters]
    if isinstance(topic_configs, str):
        place = f"--topic-configs {topic_configs}"
        return [replace(config, topics_place=place) for config in configs]
    return configs


def with_filters(config: Config, include: str | None, exclude: str | None) -> Config:
    """Put the filters of the command line in place of those of the file."""
    if include is not None:
        pattern = _regex(include, "include")
        config = replace(config, include=pattern, include_place="include")
    if exclude is not None:
        pattern = _regex(exclude, "exclude")
        config = replace(config, exclude=pattern, exclude_place="exclude")
    return config


def parse_toml(text: str, path: str, config: Config = Config()) -> Config:
    """Parse and check the TOML file; put what it says into a Config."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not TOML: {error}", value=path) from error
    _refuse_unknown(tables, _TABLES, path, "table")
    broker = _flat(_table(tables, "broker", path))
    place = f"[defaults] of {path}"
    return replace(
        config,
        defaults=check_values(_flat(_table(tables, "defaults", path)), place),
        defaults_place=place,
        patterns=tuple(_patterns(tables.get("topics", []), path)),
        **_broker_fields(broker, f"[broker] of {path}"),
        **_round_fields(_table(tables, "round", path), f"[round] of {path}"),
    )


def parse_topic_configs(text: str, path: str) -> dict[str, dict[str, Value]]:
    """Parse and check `{topic: {topic configuration name: value}}`, or what Kafka's tools print.

    Names that only a later Kafka has are left out of what its tools print, and refused in JSON.
    """
    if is_described(text):
        try:
            described = described_topics(text)
        except ValueError as error:
            raise ConfigError(f"{error}. Write it anew with Kafka's tool", value=path) from error
        return {
            topic: known_values(values, f"{path}: topic {topic}")
            for topic, values in described.items()
        }
    try:
        topics = json.loads(text, object_pairs_hook=lambda pairs: _object(pairs, path))
    except (ValueError, RecursionError) as error:
        problem = "neither JSON nor what kafka-configs or kafka-topics --describe prints"
        raise ConfigError(f"{problem}: {error}", value=path) from error
    if not isinstance(topics, dict):
        raise ConfigError(
            f"expected an object of topics, found {json_text(topics, 40)}", value=path
        )
    return _checked_topics(topics, path)


def kafka_choice(name: object, place: str = "") -> KafkaChoice:
    """Choose a version by its name; ConfigError where no such version exists.

    place: where it stands in a file; "" for the option.
    """
    version = BY_NAME.get(name) if isinstance(name, str) else None
    if version is None:
        given = ("", f"{place} = {name!r}") if place else ("kafka", name)
        raise ConfigError(f"expected one of {NAMES}", *given)
    return KafkaChoice(version, f"{place or '--kafka'} says so")


def is_described(text: str) -> bool:
    """Say whether the text is of one of these tools."""
    return any(_HEADING.match(line) or _TOPIC.match(line) for line in text.splitlines())


def described_topics(text: str) -> Mapping[str, Mapping[str, str]]:
    """Give the values of each topic by name; other lines of the tools are left out.

    ValueError where the text is cut short: what it has lost may protect records.
    """
    lines = text.splitlines()
    if not text.endswith(("\n", "\r")):
        raise ValueError(f"the text may be cut short: no line break follows line {len(lines)}")
    topics: dict[str, dict[str, str]] = {}
    settings: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if heading := _HEADING.match(line):
            settings = topics.setdefault(heading[1], {})
        elif setting := _SETTING.match(line):
            settings[setting[1]] = setting[2]
        elif _BEGINS_A_SETTING.match(line):
            raise ValueError(f"line {number} is cut short")
        elif topic := _TOPIC.match(line):
            pairs = filter(None, _NEXT_SETTING.split(topic[2].strip()))
            topics.setdefault(topic[1], {}).update(pair.split("=", 1) for pair in pairs)
    return topics


def _beside(
    values: Mapping[str, Value], standing: Sequence[Mapping[str, Value]]
) -> Mapping[str, Value]:
    """Leave out the policy where one of these has one, which stands."""
    if "cleanup.policy" in values and any("cleanup.policy" in each for each in standing):
        return {name: value for name, value in values.items() if name != "cleanup.policy"}
    return values


def _config_of(
    cluster: ClusterSettings | None,
    toml: tuple[str, str] | None,
    topics: Mapping[str, Mapping[str, Value]],
    settings: Mapping[str, str],
) -> Config:
    """toml: text and path of the file."""
    config = Config()
    if cluster is not None:
        expiration_ms = cluster.producer_id_expiration_ms
        config = Config(
            cluster=cluster, producer_id_expiration_ms=expiration_ms, kafka=cluster.kafka
        )
    if toml is not None:
        config = parse_toml(*toml, config)
    config = replace(config, topics=topics)
    if settings:
        of_broker = {name: value for name, value in settings.items() if name in BROKER_SETTINGS}
        of_topics = {name: value for name, value in settings.items() if name not in of_broker}
        overrides = check_values(of_topics, "settings")
        config = replace(config, overrides=overrides, **_broker_fields(of_broker, "settings"))
    topic_config(config.defaults, "", config.defaults_place)
    for topic in config.topics:
        config.topic(topic)  # so that what cannot go together is found before any log is looked at
    return config


def _checked_topics(topics: Mapping[str, Any], place: str) -> dict[str, dict[str, Value]]:
    checked = {}
    for topic, values in topics.items():
        if not isinstance(values, Mapping):
            raise ConfigError(
                f"topic {topic}: expected an object, found {json_text(values, 40)}", place
            )
        checked[topic] = check_values(values, f"{place}: topic {topic}")
    return checked


def _read(path: str) -> str:
    try:
        with LOCAL.open_named(path) as source:
            text = source.read().decode("utf-8-sig")
        return StringIO(text, newline=None).read()
    except OSError as error:
        hint = near_path(path) if isinstance(error, FileNotFoundError) else ""
        raise ConfigError(f"{error.strerror}{hint}", value=path or repr(path)) from error
    except UnicodeDecodeError as error:
        raise ConfigError("not UTF-8", value=f"{path}, byte {error.start}") from error


def _object(pairs: list[tuple[str, Any]], path: str) -> dict[str, Any]:
    names = dict(pairs)
    for name, _ in pairs if len(names) < len(pairs) else []:
        if sum(other == name for other, _ in pairs) > 1:
            raise ConfigError(f"{name!r} is given twice", value=path)
    return names


def _table(tables: Mapping[str, Any], name: str, path: str) -> dict[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{name} is not a table: write [{name}]", value=path)
    return table


def _patterns(entries: object, path: str) -> Iterator[TopicPattern]:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError("topics is not a list of tables: write [[topics]]", value=path)
    for entry in entries:
        if not isinstance(entry.get("match"), str):
            raise ConfigError("[[topics]] without match, a regular expression", value=path)
        place = f"[[topics]] {entry['match']!r} of {path}"
        values = {name: value for name, value in entry.items() if name != "match"}
        yield TopicPattern(_regex(entry["match"], place), check_values(_flat(values), place), place)


def _broker_fields(values: Mapping[str, object], place: str) -> dict[str, Any]:
    """Give fields of Config by broker settings."""
    _refuse_unknown(values, tuple(BROKER_SETTINGS), place, "setting")
    return {
        name.replace(".", "_"): check_value(name, BROKER_SETTINGS[name], value, place)
        for name, value in values.items()
    }


def _round_fields(values: Mapping[str, object], place: str) -> dict[str, Any]:
    _refuse_unknown(values, _ROUND_KEYS, place, "setting")
    fields: dict[str, Any] = {}
    for name in ("include", "exclude"):
        text = values.get(name, "")
        if not isinstance(text, str):
            raise ConfigError(f"{place}: {name} = {text!r}: expected a regular expression")
        fields[name] = _regex(text, f"{place}: {name}") if text else None
        fields[f"{name}_place"] = f"{place}: {name}"
    assume = values.get("assume_fully_replicated", False)
    if not isinstance(assume, bool):
        raise ConfigError(
            f"{place}: assume_fully_replicated = {json_text(assume)}: expected true or false"
        )
    if values.get("kafka", "") != "":
        fields["kafka"] = kafka_choice(values["kafka"], f"{place}: kafka")
    return fields | {"assume_fully_replicated": assume}


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """Undo TOML's reading of an unquoted `segment.bytes` as a table of a table."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{rest}": inner for rest, inner in _flat(value).items()}
        else:
            flat[name] = value
    return flat


def _regex(text: str, place: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ConfigError(f"{text!r} is not a regular expression: {error}", place) from error


def _refuse_unknown(
    table: Mapping[str, object], known: tuple[str, ...], place: str, kind: str
) -> None:
    for name in table:
        if name not in known:
            where = (
                "; it is a topic configuration: put it in [defaults]" if name in SETTINGS else ""
            )
            hint = where or f", only {', '.join(known)}"
            raise ConfigError(f"no {kind} is named {name!r}{hint}", place)
