"""Histories that are kept, since each once showed a defect: a script, and what Kafka said to it."""

from pathlib import Path

from tests.histories import script
from tests.histories.batch import Batch
from tests.histories.broker_process import Broker
from tests.histories.recorded import DiffersError, RecordedBroker, RecordingBroker

DIRECTORY = Path(__file__).parent / "cases"


def scripts() -> list[Path]:
    return sorted(DIRECTORY.glob("*.jsonl"))


def replay(path: Path, root: Path) -> list[str]:
    """What goes wrong with a kept history, without Kafka. root: is made."""
    broker = RecordedBroker(_recording_of(path), root)
    try:
        return _problems(path, root, broker)
    except DiffersError as error:
        return [f"not as recorded: {error}"]


def record(path: Path, root: Path, broker: Broker) -> list[str]:
    """Likewise with Kafka; what it says is kept where nothing goes wrong."""
    recording = RecordingBroker(broker, root)
    problems = _problems(path, root, recording)
    if not problems:
        recording.save(_recording_of(path))
    return problems


def _problems(path: Path, root: Path, broker: Broker) -> list[str]:
    batch = Batch([script.read(path)], root, broker)
    batch.run()
    return batch.world.models[0].problems or batch.problems


def _recording_of(path: Path) -> Path:
    return path.with_suffix(".recorded.xz")
