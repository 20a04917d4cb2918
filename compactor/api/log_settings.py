"""By what one log is opened: its topic's configuration, and the clock."""

from compactor import account
from compactor.api.premises import Premises
from compactor.stopped_log.opened_log import LogSettings
from storage.log.engine.log_config import LogConfig


def settings_of(topic: str, premises: Premises) -> LogSettings:
    """What the premises say of a topic, as the engine takes it."""
    config = premises.config
    account.current().topics.add(topic)
    found = LogConfig().with_values(config.values(topic))
    return LogSettings(
        found, premises.as_of_ms, config.producer_id_expiration_ms, config.kafka.version
    )
