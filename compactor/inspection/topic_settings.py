"""The effective configuration of one topic, and where each value comes from. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from compactor.settings.cluster_settings import KAFKAS_DEFAULT, TOPICS_OWN
from compactor.settings.config import Config
from storage.formats.kafka_settings import KNOWN_ELSEWHERE, SETTINGS, Value
from storage.kafka_versions import has_setting


class ConfigEntry(NamedTuple):
    """One setting of a topic."""

    name: str  # as `kafka-configs` has it
    value: Value | None  # of cleanup.policy its members; None: not shown, as of a secret
    source: str  # what set it, for people
    is_known: bool = True  # a Kafka that is known has it; else its value may be a secret
    note: str | None = None  # why it has no effect: for people


class TopicConfiguration(NamedTuple):
    """A topic that has partitions in the log directory."""

    topic: str
    is_deleted: bool  # the cluster's metadata log does not have it
    entries: tuple[ConfigEntry, ...]  # by name
    broker: str | None = None  # for people; None: all log directories are of one


def entries_of(config: Config, topic: str, everything: bool) -> Iterator[ConfigEntry]:
    """Yield the settings that somebody set, by name; or all. Raise ConfigError where they clash."""
    config.topic(topic)  # so that values that do not go together are told
    found = {
        name: ConfigEntry(name, value, layer.place)
        for layer in config.layers(topic)
        for name, value in layer.values.items()
    }
    own = {} if config.cluster is None else config.cluster.without_effect(topic)
    for name, text in own.items():
        is_known = name in KNOWN_ELSEWHERE
        found[name] = ConfigEntry(name, text if is_known else None, TOPICS_OWN, is_known)
    kafka = config.kafka.version
    for name in sorted({*SETTINGS, *own}):
        default = None if name in own else SETTINGS[name].default
        note = None if has_setting(kafka, name) else f"Kafka {kafka.release} does not have it"
        if name in found:
            yield found[name]._replace(note=note)
        elif everything and default is not None:
            yield ConfigEntry(name, default, KAFKAS_DEFAULT, note=note)
