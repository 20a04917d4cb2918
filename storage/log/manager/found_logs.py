"""The logs that a log manager has, by what the names of their directories say."""

from dataclasses import dataclass, field

from storage.formats.checkpoint import TopicPartition
from storage.log.engine.log import Log


@dataclass(slots=True)
class FoundLogs:
    """Several threads may add to it: each addition is one step of its dict or list."""

    current: dict[TopicPartition, Log] = field(default_factory=dict)
    future: dict[TopicPartition, Log] = field(default_factory=dict)
    stray: list[Log] = field(default_factory=list)
    deleted: list[Log] = field(default_factory=list)

    def every_log(self) -> list[Log]:
        """Also those that nobody is given."""
        return [*self.current.values(), *self.future.values(), *self.stray, *self.deleted]
