"""Text of Kafka 4.3.1's own tools (and, for kafka-topics, of its sources), cut to a few lines."""

from pathlib import Path

import pytest

from compactor.errors import ConfigError
from compactor.settings.config import load_config, parse_topic_configs

ALL = """All configs for topic orders are:
  cleanup.policy=compact,delete sensitive=false synonyms={DEFAULT_CONFIG:log.cleanup.policy=a,b}
  compression.gzip.level=-1 sensitive=false synonyms={DEFAULT_CONFIG:compression.gzip.level=-1}
  follower.replication.throttled.replicas= sensitive=false synonyms={}
  name.of.a.later.kafka=5 sensitive=false synonyms={}
  segment.bytes=1048576 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:segment.bytes=1048576}
All configs for topic other are:
  cleanup.policy=delete sensitive=false synonyms={DEFAULT_CONFIG:log.cleanup.policy=delete}
"""
ORDERS = {
    "cleanup.policy": ("compact", "delete"),
    "compression.gzip.level": "-1",
    "segment.bytes": 1048576,
}
TOPICS = (
    "Topic: orders\tTopicId: Zqr9Mn1bQ1eV0gX3m1y2pw\tPartitionCount: 1\tReplicationFactor: 1\t"
    "Configs: cleanup.policy=compact,delete,segment.bytes=1048576\n"
    "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n"
    "Topic: other\tTopicId: yyr9Mn1bQ1eV0gX3m1y2pw\tPartitionCount: 1\tReplicationFactor: 1\t"
    "Configs: \n"
)


def test_what_kafka_configs_prints() -> None:
    other = {"cleanup.policy": ("delete",)}
    assert parse_topic_configs(ALL, "t") == {"orders": ORDERS, "other": other}


def test_what_kafka_configs_prints_of_own_settings_alone() -> None:
    text = "Dynamic configs for topic orders are:\nDynamic configs for topic other are:\n" + (
        "  retention.ms=-1 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=-1}\n"
    )
    assert parse_topic_configs(text, "t") == {"orders": {}, "other": {"retention.ms": -1}}


def test_what_kafka_topics_prints() -> None:
    orders = {"cleanup.policy": ("compact", "delete"), "segment.bytes": 1048576}
    assert parse_topic_configs(TOPICS, "t") == {"orders": orders, "other": {}}


def test_it_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "configs.txt").write_text(ALL)
    config = load_config(topic_configs=str(tmp_path / "configs.txt"))
    assert config.topic("orders").segment_bytes == 1048576
    assert config.topic("orders").policy_source == "--topic-configs"
    assert not config.topic("other").is_compacted


def test_a_value_that_kafka_would_not_take_is_named() -> None:
    text = ALL.replace("segment.bytes=1048576 ", "segment.bytes=much ")
    with pytest.raises(ConfigError, match=r"t: topic orders: segment.bytes = 'much'"):
        parse_topic_configs(text, "t")


def test_what_is_neither_is_refused() -> None:
    with pytest.raises(ConfigError, match="neither JSON nor what kafka-configs"):
        parse_topic_configs("orders compact", "t")


@pytest.mark.parametrize(
    ("text", "line"),
    [(ALL[: ALL.index("1048576 ")] + "\n", 6), (ALL[: ALL.index("=1048576 ")] + "\n" + ALL, 6)]
    + [(text[:end], text[:end].count("\n") + 1) for text, end in ((ALL, -1), (ALL, 140))]
    + [(TOPICS[: TOPICS.index("48576")], 1), (TOPICS[: TOPICS.index(",segment.bytes")], 1)],
)
def test_a_text_that_is_cut_short_is_refused(text: str, line: int) -> None:
    """What is lost may be a lag or a retention, and half of a number is another number."""
    with pytest.raises(ConfigError, match=rf"^t: .*line {line}\b"):
        parse_topic_configs(text, "t")
