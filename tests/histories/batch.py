"""Histories that share log directories, step by step."""

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.histories import our_commands
from tests.histories.broker_process import Broker
from tests.histories.broker_steps import BrokerSteps
from tests.histories.log_model import LogModel
from tests.histories.looks import Looks
from tests.histories.our_steps import OurSteps
from tests.histories.script import Script, Step
from tests.histories.tampering import Tampering
from tests.histories.world import World
from tests.support.local_round import engine_of

Carry = Callable[[Step, Sequence[Step]], None]
_CHANGING = ("run", "recover", "undo")  # what we do to logs


class Batch:
    """Histories with the same steps but for what is a log's own."""

    def __init__(self, scripts: Sequence[Script], root: Path, broker: Broker) -> None:
        """root: a directory of its own, which is made."""
        self.scripts, self._common = scripts, scripts[0].common()
        assert all(script.common() == self._common for script in scripts)
        self.world = World(scripts, root)
        self._ours, self._tampering = OurSteps(self.world), Tampering(self.world)
        self._looks = Looks(self.world, broker)
        self._carry: dict[str, Carry] = {
            "broker": BrokerSteps(self.world, broker).broker,
            "tamper": self._tampering.tamper,
            "plan": self._ours.plan,
            "run": self._ours.run,
            "recover": self._ours.recover,
            "undo": self._ours.undo,
            "discard": self._ours.discard,
            "verify": self._ours.verify,
        }

    def run(self) -> None:
        """All steps of all histories; what goes wrong stands with the models."""
        # by the batch that the first history is of: the same when one is played alone
        engine = engine_of(zlib.crc32(self.scripts[0].name.partition("-")[0].encode()))
        with our_commands.local_rounds(self._ours.work_dir / "round", engine):
            for number, common in enumerate(self._common):
                self.world.step = f"step {number + 1} ({common['do']})"
                own = [script.steps[number] for script in self.scripts]
                self._carry[common["do"]](common, own)
                self.world.set_times()
                if common["do"] in _CHANGING:
                    self._looks.look(own)
                if common["do"] == "broker":
                    self._tampering.remember()

    @property
    def problems(self) -> list[str]:
        """Of no history alone."""
        return self.world.problems

    def failed(self) -> list[tuple[Script, LogModel]]:
        pairs = zip(self.scripts, self.world.models, strict=True)
        return [(script, model) for script, model in pairs if model.problems]
