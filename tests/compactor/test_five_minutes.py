"""The README's way from kafka-configs to topics.json, on what Kafka 4.3.1's own tool printed."""

import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from compactor.config import load_config

README = Path(__file__).parents[2] / "README.md"
# kafka-configs.sh --bootstrap-server … --entity-type topics --describe --all, of three topics
PRINTED = Path(__file__).with_name("kafka_configs.txt")
SCRIPT = re.compile(r"^ +python3 - configs\.txt > topics\.json <<'END'\n(.*?)^ +END$", re.M | re.S)


def test_what_kafka_configs_prints_becomes_what_is_read(tmp_path: Path) -> None:
    found = SCRIPT.search(README.read_text(encoding="utf-8"))
    assert found is not None
    command = [sys.executable, "-", str(PRINTED)]
    script = dedent(found[1])
    ran = subprocess.run(command, input=script, capture_output=True, text=True, check=True)
    path = tmp_path / "topics.json"
    path.write_text(ran.stdout, encoding="utf-8")
    config = load_config(None, str(path))
    assert {topic: config.topic(topic).cleanup_policy for topic in config.topics} == {
        "changes": ("compact", "delete"),
        "orders": ("compact",),
        "events": ("delete",),
    }
    assert config.topic("orders").segment_bytes == 10_485_760
    assert config.topic("changes").retention_ms == 86_400_000
