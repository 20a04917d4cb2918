"""A broker whose newest snapshot of the metadata log is torn does what we say of its start."""

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from compactor import api
from compactor.api import StartOutcome
from storage.log.cluster_metadata import METADATA_DIR, newest_snapshot
from tests.broker import clients
from tests.broker.broker import Broker, BrokerError

pytestmark = pytest.mark.broker

SETTINGS = {
    "log.dirs": "data",
    "metadata.log.max.snapshot.interval.ms": "1000",
    "metadata.log.max.record.bytes.between.snapshots": "1000",
}
LEFT = 4  # topics
TORN: dict[str, tuple[Callable[[bytes], bytes], StartOutcome]] = {
    "no bytes": (lambda _: b"", StartOutcome.BROKER_ENDS),
    "a damaged byte": (
        lambda data: data[:400] + bytes([data[400] ^ 1]) + data[401:],
        StartOutcome.BROKER_ENDS,
    ),
    "half": (lambda data: data[: len(data) // 2], StartOutcome.LOGS_STRAY),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("torn") / "original"
    home.mkdir()
    with Broker(home) as broker:
        broker.start(SETTINGS)
        clients.create(broker.bootstrap, *(NewTopic(f"t{n}", 1, 1) for n in range(LEFT)))
        deadline = time.monotonic() + 60
        while "t3" not in _snapshot(home).read_bytes().decode("latin1"):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        broker.stop()
    return home


def _snapshot(home: Path) -> Path:
    return Path(newest_snapshot(str(home / "data" / METADATA_DIR)) or home / "data/meta.properties")


def _started(home: Path) -> bool | int:
    """False: the broker ends; else how many logs it has renamed to -stray."""
    with Broker(home) as broker, suppress(BrokerError):
        broker.start(SETTINGS)
        time.sleep(3)  # it looks for stray logs once it has loaded its metadata
        return False if broker.has_ended() else len([*(home / "data").glob("*-stray")])
    return False


@pytest.mark.parametrize("name", TORN)
def test_a_broker_does_with_a_torn_snapshot_what_we_say(
    original: Path, tmp_path: Path, name: str
) -> None:
    change, outcome = TORN[name]
    home, mended = tmp_path / "home", tmp_path / "mended"
    shutil.copytree(original, home)
    path = _snapshot(home)
    data = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(change(data))
    (problem,) = api.start_problems([str(home / "data")])
    assert (problem.outcome, problem.path) == (outcome, str(path))
    assert problem.command == f"rm -- {path}"
    shutil.copytree(home, mended)
    seen = _started(home)
    # with what is behind the snapshot a broker may end, too
    assert seen is False or (outcome is StartOutcome.LOGS_STRAY and seen >= LEFT)
    _snapshot(mended).unlink()
    assert api.start_problems([str(mended / "data")]) == ()
    left = _started(mended)
    assert (left, left is False) == (0, False)
