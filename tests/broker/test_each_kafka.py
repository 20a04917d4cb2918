"""A broker of each Kafka: with nothing said, its own answer is given, and it starts on the result.

Also in the middle of an upgrade: the software is new, and the cluster's metadata.version is not.
"""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic

from storage.kafka_versions import BY_NAME
from storage.log.cluster_metadata import METADATA_DIR
from tests.broker import clients, views
from tests.broker.broker import Broker
from tests.support.command_process import compactor

pytestmark = pytest.mark.broker
SETTINGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "65536",
    "min.cleanable.dirty.ratio": "0",
}
CODECS = ("zstd", "lz4")
ALWAYS_SAID = ("Performing controller activation", "`log.cleaner.enable` is deprecated")
KEYS, RECORDS = 50, 2000


@pytest.fixture(params=BY_NAME)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path, kafka=request.param) as broker:
        yield broker


def _fill(broker: Broker) -> dict[str, bytes]:
    """Write topics, one for each codec; give what is the latest of each key."""
    clients.create(broker.bootstrap, *(NewTopic(each, 1, 1, config=SETTINGS) for each in CODECS))
    records = [
        (f"key-{number % KEYS}", random.Random(number).randbytes(200)) for number in range(RECORDS)
    ]
    encoded = [(key.encode(), value) for key, value in records]
    for codec in CODECS:
        clients.write(broker.bootstrap, codec, encoded, 100, compression_type=codec)
    return dict(records)


def _compacted(broker: Broker) -> dict[str, Any]:
    """The report of a run with nothing said but where the logs are."""
    done = compactor("run", broker.data, "--format", "json", "--include", "|".join(CODECS))
    assert done.returncode == 0, done
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _accepts(broker: Broker, latest: dict[str, bytes]) -> None:
    """It starts without a word about the logs, and its clients see what was there."""
    broker.start()
    assert _complaints(broker) == []
    seen = views.read_all(broker.bootstrap, CODECS)
    for codec in CODECS:
        view = seen[codec, "read_uncommitted"]
        found = {key.decode(): value for (_, key), (_, value) in view.latest().items()}
        assert found == latest
        assert len(view.records) < RECORDS / 2
    broker.stop()


def _complaints(broker: Broker) -> list[str]:
    """All but what a broker says on these settings before anything was compacted, too."""
    return [line for line in broker.complaints() if not any(each in line for each in ALWAYS_SAID)]


def _finalized(data: Path) -> set[int]:
    """Each metadata.version that a FeatureLevelRecord of the metadata log has (kind 12)."""
    log = b"".join(path.read_bytes() for path in sorted((data / METADATA_DIR).glob("*.log")))
    name = b"metadata.version"
    found = re.findall(re.escape(bytes([1, 12, 0, len(name) + 1]) + name) + b"(..)", log, re.DOTALL)
    return {int.from_bytes(level) for level in found}


def test_each_gives_its_own_answer_and_goes_on(broker: Broker) -> None:
    """V-1."""
    broker.start()
    latest = _fill(broker)
    broker.stop()
    report = _compacted(broker)
    [used] = report["kafka"]
    wanted = BY_NAME[broker.kafka]
    assert (used["version"], used["release"]) == (wanted.name, wanted.release)
    assert f"supports metadata.version {wanted.metadata_version}" in used["why"]
    assert report["totals"]["logs"]["cleaned"] == len(CODECS)
    _accepts(broker, latest)


def test_in_the_middle_of_an_upgrade_the_software_decides(tmp_path: Path) -> None:
    """V-1: 4.4 was started on the logs of 4.3, and nobody has raised metadata.version since."""
    with Broker(tmp_path, kafka="4.3") as broker:
        broker.start()
        latest = _fill(broker)
        broker.stop()
        broker.kafka = "4.4"
        broker.start()
        broker.stop()
        assert _finalized(broker.data) == {BY_NAME["4.3"].metadata_version}
        report = _compacted(broker)
        assert [each["version"] for each in report["kafka"]] == ["4.4"]
        _accepts(broker, latest)
