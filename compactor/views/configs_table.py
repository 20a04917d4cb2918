"""The configuration of topics: a table for a person, and a document."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len

from compactor.host.printable import counted, printable
from compactor.inspection.topic_settings import ConfigEntry, TopicConfiguration
from compactor.views.ending import SettingDocument, SettingNotes
from storage.formats.kafka_settings import json_value, value_text

# The width of the column of values: a longer one moves what follows it, in its own line alone.
_USUAL_VALUE = 16


def configs_lines(configurations: Sequence[TopicConfiguration]) -> Iterator[str]:
    """Yield a line for each topic, and under it one for each setting: name, value, set by.

    Plain lines, since ten thousand topics have sixty thousand of them.
    """
    names = max((len(entry.name) for topic in configurations for entry in topic.entries), default=0)
    yield counted(len({topic.topic for topic in configurations}), "topic")
    broker = None
    for topic in configurations:
        if topic.broker != broker:
            broker = topic.broker
            yield f"\n{printable(f'{broker}:')}"
        yield f"\n{printable(topic.topic)}{' (deleted)' if topic.is_deleted else ''}"
        yield from _lines(topic, names)


def _lines(topic: TopicConfiguration, names: int) -> Iterator[str]:
    if not topic.entries:
        yield "  nothing is known of it"
    for entry in topic.entries:
        value = "" if entry.value is None else printable(value_text(entry.value))
        blanks = " " * max(0, _USUAL_VALUE - cell_len(value))
        note = f" (no effect: {entry.note})" if entry.note else ""
        note = note if entry.is_known else " (unknown: its value is not shown)"
        name = printable(entry.name)
        yield f"  {name:{names}}  {value}{blanks}  {printable(entry.source)}{note}"


class TopicSettingsDocument(NamedTuple):
    topic: str
    is_deleted: bool
    broker: str | None
    settings: dict[str, SettingDocument]


@dataclass(frozen=True, slots=True)
class ConfigsDocument:
    """The settings of topics."""

    topics: list[TopicSettingsDocument]


def configs_document(configurations: Sequence[TopicConfiguration]) -> ConfigsDocument:
    """Return the fields that follow those of the summary."""
    return ConfigsDocument(
        [
            TopicSettingsDocument(
                topic=topic.topic,
                is_deleted=topic.is_deleted,
                broker=topic.broker,
                settings={entry.name: _setting(entry) for entry in topic.entries},
            )
            for topic in configurations
        ]
    )


def _setting(entry: ConfigEntry) -> SettingDocument:
    value = None if entry.value is None else json_value(entry.value)
    return SettingDocument(value, entry.source, SettingNotes(entry.is_known, entry.note))
