"""The configuration of topics: a table for a person, and a document."""

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from compactor.host.printable import counted, printable
from compactor.inspect.topic_settings import TopicConfiguration
from compactor.topic_config import json_value, value_text
from compactor.views.report_json import JsonObject


def configs_view(found: Sequence[TopicConfiguration]) -> RenderableType:
    """A line for each setting, under the name of its topic."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("topic", "setting", "value", "set by"):
        table.add_column(column, overflow="fold")
    broker = None
    for topic in found:
        if topic.broker != broker:
            broker = topic.broker
            table.add_row(Text(printable(f"{broker}:"), "bold"))
        name = printable(topic.topic) + (" (deleted)" if topic.is_deleted else "")
        for entry in topic.entries:
            value = printable(value_text(entry.value))
            table.add_row(Text(name), entry.name, Text(value), Text(printable(entry.source)))
            name = ""
        if not topic.entries:
            table.add_row(Text(name), Text("nothing is known of it"), "", "")
    topics = len({topic.topic for topic in found})
    return Group(Text(counted(topics, "topic")), table)


def configs_document(found: Sequence[TopicConfiguration]) -> JsonObject:
    return {
        "topics": [
            {
                "topic": topic.topic,
                "is_deleted": topic.is_deleted,
                "broker": topic.broker,
                "settings": {
                    entry.name: {"value": json_value(entry.value), "source": entry.source}
                    for entry in topic.entries
                },
            }
            for topic in found
        ]
    }
