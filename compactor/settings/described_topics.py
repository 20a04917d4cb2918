"""Settings of topics in the text that Kafka's own tools print. Pure.

kafka-configs --describe [--all]:

    All configs for topic orders are:
      cleanup.policy=compact sensitive=false synonyms={…}

kafka-topics --describe:

    Topic: orders  TopicId: …  PartitionCount: 3  Configs: cleanup.policy=compact,segment.ms=60000

Source: Kafka, ConfigCommand.describeResourceConfig, TopicCommand.TopicDescription.
"""

import re
from collections.abc import Mapping

_HEADING = re.compile(r"(?:All|Dynamic) configs for topic (\S+) are:")
_SETTING = re.compile(r"  (\S+?)=(.*?) sensitive=(?:true|false) synonyms=\{")
_BEGINS_A_SETTING = re.compile(r"  [a-z0-9._-]+(=|$)")
_TOPIC = re.compile(r"Topic: (\S+)\s.*?\bConfigs: ?(.*)")
_NEXT_SETTING = re.compile(r",(?=[a-z0-9.]+=)")  # a value may have a comma: compact,delete


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
