"""What docs/how-to/topics-json.md says, on what Kafka 4.3.1's own tool printed."""

from pathlib import Path

from compactor.settings.config import load_config

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "topics-json.md"
# kafka-configs.sh --bootstrap-server … --entity-type topics --describe --all, of three topics
PRINTED = Path(__file__).with_name("kafka_configs.txt")


def test_what_kafka_configs_prints_is_what_is_read() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert "--entity-type topics --describe --all > configs.txt" in text
    assert "--topic-configs configs.txt" in text
    config = load_config(None, str(PRINTED))
    assert {topic: config.topic(topic).cleanup_policy for topic in config.topics} == {
        "changes": ("compact", "delete"),
        "orders": ("compact",),
        "events": ("delete",),
    }
    assert config.topic("orders").segment_bytes == 10_485_760
    assert config.topic("changes").retention_ms == 86_400_000
