"""By what one log is opened: its topic's configuration, and the clock."""

from collections.abc import Iterator
from dataclasses import fields

from compactor import account
from compactor.api.premises import Premises
from compactor.config import Config
from compactor.errors import ConfigError
from compactor.stopped_log.opened_log import LogSettings
from storage.formats.topic_config import value_text
from storage.log.engine.errors import ConfigError as EngineConfigError
from storage.log.engine.log_config import LogConfig

_NAMES = {field.name.replace("_", ".") for field in fields(LogConfig)}


def settings_of(topic: str, premises: Premises) -> LogSettings:
    """What the premises say of a topic, as the engine takes it. Raise ConfigError if one is not
    valid."""
    config = premises.config
    account.current().topics.add(topic)
    try:
        found = LogConfig().changed(dict(_texts(config, topic)))
    except EngineConfigError as error:
        raise ConfigError(f"topic {topic}: {error}") from error
    expiration_ms = config.producer_id_expiration_ms
    return LogSettings(found, premises.as_of_ms, expiration_ms, config.kafka.version)


def _texts(config: Config, topic: str) -> Iterator[tuple[str, str]]:
    for name, value in config.values(topic).items():
        if name == "internal.segment.bytes":  # Kafka's own, for tests: it wins
            name = "segment.bytes"
        if name in _NAMES:
            yield name, value_text(value)
