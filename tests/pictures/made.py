"""The log directory that the pictures show: a shop's, of a broker that has a metadata log."""

import os
import re
from pathlib import Path

from demo.workload import topic_configs, write_log_dir
from storage.formats import meta_properties, partition_metadata
from storage.log.cluster_metadata import METADATA_DIR
from tests.compactor.test_kafka_choice import registered
from tests.pictures.terminal import picture, shown
from tests.storage.log import test_cluster_metadata as metadata

END_MS = 1_762_160_400_000  # 2025-11-03T09:00Z
AS_OF = ("--as-of", str(END_MS))
RECORDS = 160_000
METADATA_VERSION = 30  # of Kafka 4.3
SHOWN_PATH = "/data/kafka"
WAITS = {"prices": {"min.compaction.lag.ms": str(9 * 24 * 60 * 60 * 1000)}}
COMMANDS = {"plan": (), "explain": ("prices-0",)}


def make_log_dir(root: Path) -> Path:
    """Write the log directory below root."""
    log_dir = root / "kafka"
    write_log_dir(str(log_dir), RECORDS, END_MS)
    ids = {}
    for path in log_dir.glob("*-*/partition.metadata"):
        found = partition_metadata.read(str(path))
        assert found is not None
        ids[path.parent.name.rpartition("-")[0]] = found.topic_id
    values = [_registration(log_dir)]
    values += [metadata.topic(name, ids[name]) for name in sorted(ids)]
    for name, settings in topic_configs().items():
        for key, value in (settings | WAITS.get(name, {})).items():
            values.append(metadata.config(key, value, name))
    (log_dir / METADATA_DIR).mkdir()
    metadata.log(log_dir / METADATA_DIR, 0, metadata.batches(0, *values))
    for path in log_dir.rglob("*"):
        os.utime(path, (END_MS / 1000, END_MS / 1000))
    return log_dir


def _registration(log_dir: Path) -> bytes:
    """Of the broker, with this directory as its only one: nothing else has to be given."""
    directory_id = meta_properties.read(str(log_dir)).directory_id
    assert directory_id is not None
    directory = partition_metadata.decode_uuid(directory_id)
    assert directory is not None
    without_tags = registered(1, METADATA_VERSION)[:-1]
    return without_tags + b"\1\0" + bytes([1 + len(directory.bytes), 2]) + directory.bytes


def terminal_picture(command: str, log_dir: Path, cache: Path) -> str:
    """An SVG of what a command says of the log directory, which nobody knows the place of."""
    text = shown(command, str(log_dir), *COMMANDS[command], *AS_OF, cache=cache)
    return picture(re.sub(f"{re.escape(str(log_dir.parent))}(/kafka)?", SHOWN_PATH, text), command)
