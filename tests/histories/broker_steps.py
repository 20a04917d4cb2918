"""A broker starts, is looked at, does what histories say, and stops or is killed."""

from collections.abc import Iterator, Sequence

from tests.histories import broker_turns, checks
from tests.histories.broker_process import Broker, BrokerError
from tests.histories.broker_turns import Asked
from tests.histories.log_model import LogModel
from tests.histories.script import Step
from tests.histories.world import World


class BrokerSteps:
    def __init__(self, world: World, broker: Broker) -> None:
        self._world, self._broker = world, broker

    def broker(self, common: Step, own: Sequence[Step]) -> None:
        world = self._world
        world.now_ms += common["advance"]
        if not self._starts():
            return
        for number, advance in enumerate(common["clocks"]):
            world.now_ms += advance
            self._turn(number, own)
        ended = self._broker.ask("view")["logs"]
        for model, _ in world.living(own):
            if model.exists and model.partition in ended:
                world.note(model, checks.in_between(model, ended[model.partition]))
            elif model.exists:
                world.note(model, ["it is gone"])
        world.settled = world.stopped_well = common["stop"] == "clean"
        world.counts[f"broker: stopped, {common['stop']}"] += 1
        self._broker.ask("stop", clean=world.stopped_well)
        for model in world.models:
            model.start_floor = model.start if world.stopped_well else model.durable_start
            model.start_of_brokers = min(model.start_of_brokers, model.start_floor)

    def _starts(self) -> bool:
        """Start it, and look at what it finds."""
        world = self._world
        configs = {model.name: model.config for model in world.models}
        dirs = [str(path) for path in world.dirs]
        try:
            answer = self._broker.ask("start", dirs=dirs, now=world.now_ms, configs=configs)
        except BrokerError as error:
            world.note_all(f"the broker does not start: {error}")
            for model in world.models:
                if model.partition in str(error):
                    world.note(model, [f"the broker does not start: {error}"])
            return False
        for model in world.models:
            if model.problems or not model.exists:
                continue
            if model.partition in answer["logs"]:
                world.note(model, checks.at_start(model, answer["logs"][model.partition]))
            else:
                world.note(model, ["the broker does not find it"])
        return True

    def _turn(self, number: int, own: Sequence[Step]) -> None:
        world = self._world
        living = world.living(own)
        asked = [one for model, step in living for one in self._asked(model, step, number)]
        requests = [one.request for one in asked]
        answer = self._broker.ask("turn", now=world.now_ms, ops=requests)
        for one, result in zip(asked, answer["results"], strict=True):
            if not one.model.problems:
                world.note(one.model, one.done(result))
            if one.request["op"] == "checkpoint":  # of all
                for model in world.models:
                    model.durable_start = model.start

    def _asked(self, model: LogModel, step: Step, number: int) -> Iterator[Asked]:
        now_ms = self._world.now_ms
        if number == 0 and model.exists:
            yield from broker_turns.high_watermark(model, now_ms)
        for operation in step["turns"][number]:
            self._world.counts[f"broker: {operation['op']}"] += 1
            yield from broker_turns.asked(model, operation, now_ms)
