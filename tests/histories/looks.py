"""What stands in the files after a step of ours, before any broker has started.

Kafka's classes read them; the fate of a transaction is that of its marker. A log that is half-way,
since something was cut short, waits until a broker opens it.
"""

from collections.abc import Sequence
from pathlib import Path

from storage.file_names import LOG, offset_of
from storage.formats import checkpoint
from tests.histories import checks
from tests.histories.broker_process import Broker
from tests.histories.log_model import LogModel
from tests.histories.script import Step
from tests.histories.world import World


class Looks:
    def __init__(self, world: World, broker: Broker) -> None:
        self._world, self._broker = world, broker

    def look(self, own: Sequence[Step]) -> None:
        """After a step that was not cut short, where nothing before it was that is not settled."""
        world = self._world
        if not world.settled:
            return
        there = [model for model, _ in world.living(own) if model.exists]
        paths = {model.partition: str(self._path(model)) for model in there}
        found = self._broker.ask("look", paths=paths)
        world.counts["looked at after a step of ours"] += len(there)
        for model in there:
            start = self._start(model)
            seen = [checks.Seen(*fields) for fields in found[model.partition]]
            seen = [one for one in seen if one.offset >= start]
            world.note(model, checks.wrong_records(model, seen, start))

    def _path(self, model: LogModel) -> Path:
        return self._world.dirs[model.directory] / model.partition

    def _start(self, model: LogModel) -> int:
        """As a broker would take it."""
        path = self._path(model)
        offsets = (offset_of(name.name) for name in path.iterdir() if name.suffix == LOG)
        first = min(offset for offset in offsets if offset is not None)
        entries = checkpoint.read(str(path.parent / checkpoint.LOG_START))
        return max(first, entries.get((model.name, 0), 0))
