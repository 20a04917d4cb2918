"""What befalls a broker's files: entries of checkpoints are lost, or of an earlier time."""

from collections.abc import Sequence
from pathlib import Path

from storage.formats import checkpoint
from tests.histories.log_model import LogModel
from tests.histories.script import Operation, Step
from tests.histories.world import World

FILES = {
    "cleaner": checkpoint.CLEANER_OFFSET,
    "start": checkpoint.LOG_START,
    "recovery": checkpoint.RECOVERY_POINT,
}


class Tampering:
    def __init__(self, world: World) -> None:
        self._world = world

    def remember(self) -> None:
        """The entries of now are the old ones of later."""
        for number, directory in enumerate(self._world.dirs):
            for what, name in FILES.items():
                for (topic, partition), offset in checkpoint.read(str(directory / name)).items():
                    model = self._world.by_partition.get(f"{topic}-{partition}")
                    if model is not None and model.directory == number:
                        model.earlier.setdefault(what, []).append(offset)

    def tamper(self, _: Step, own: Sequence[Step]) -> None:
        for model, step in self._world.living(own):
            for operation in step.get("ops", ()):
                if model.exists:
                    self._change(model, operation)

    def _change(self, model: LogModel, operation: Operation) -> None:
        what, how = operation["file"], operation["op"]
        self._world.counts[f"tamper: {how} {what}"] += 1
        path = str(Path(self._world.dirs[model.directory]) / FILES[what])
        entries, key = checkpoint.read(path), (model.name, 0)
        earlier = model.earlier.get(what, [])
        if how == "lose":
            entries.pop(key, None)
        elif earlier:
            entries[key] = earlier[int(operation["part"] * len(earlier))]
        checkpoint.write(path, entries)
        if what == "start":
            model.start_floor = 0
