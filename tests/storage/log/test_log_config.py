"""The configuration of a topic: L-29 of docs/spec/engine.md, beside tests/engine/rules."""

import pytest

from storage.errors import ConfigError
from storage.log.log_config import LogConfig


def test_its_defaults_are_kafkas() -> None:
    """L-29.1."""
    config = LogConfig()
    assert (config.flush_messages, config.flush_ms) == (2**63 - 1, 2**63 - 1)
    assert config.message_timestamp_before_max_ms == 2**63 - 1
    assert config.message_timestamp_after_max_ms == 3_600_000


def test_an_unknown_setting_and_a_wrong_value_change_nothing() -> None:
    """L-29.4."""
    config = LogConfig()
    with pytest.raises(ConfigError, match=r"no\.such\.setting"):
        config.changed({"flush.messages": "5", "no.such.setting": "1"})
    with pytest.raises(ConfigError, match=r"flush\.messages"):
        config.changed({"flush.messages": "many"})
    assert config == LogConfig()
    assert config.changed({"flush.messages": " 5 "}).flush_messages == 5
