"""A new log directory has what a broker looks for, and says that it was shut down cleanly."""

import json
import uuid
from pathlib import Path

import pytest

from demo.new_log_dir import new_log_dir
from storage.formats import checkpoint, meta_properties, partition_metadata
from storage.log.log_dir import list_log_dir, log_end_offset
from tests.support.log_builder import Batch, Message, append

ONE = Batch([Message(b"a", b"1", 1_700_000_000_000)])


def test_it_has_what_a_broker_looks_for(tmp_path: Path) -> None:
    root = tmp_path / "logs"
    with new_log_dir(str(root), "my-cluster") as manager:
        log = manager.create(("some-topic", 3))
        for _ in range(7):
            append(log, ONE)
        manager.create(("empty", 0))
    assert {path.name for path in root.iterdir()} == {
        "some-topic-3",
        "empty-0",
        ".kafka_cleanshutdown",
        "meta.properties",
        "cleaner-offset-checkpoint",
        "log-start-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    }
    ends = {("some-topic", 3): 7, ("empty", 0): 0}
    assert checkpoint.read(str(root / checkpoint.RECOVERY_POINT)) == ends
    assert checkpoint.read(str(root / checkpoint.REPLICATION)) == ends
    marker = json.loads((root / ".kafka_cleanshutdown").read_bytes())
    assert marker == {"version": 0, "brokerEpoch": -1}
    listing = list_log_dir(str(root))
    assert listing.has_clean_shutdown and listing.ignored == ()
    assert {(p.topic, p.partition): log_end_offset(p) for p in listing.partitions} == ends


def test_it_and_its_topics_have_ids(tmp_path: Path) -> None:
    with new_log_dir(str(tmp_path), "my-cluster") as manager:
        for partition in (("a", 0), ("a", 1), ("b", 0)):
            manager.create(partition)
    properties = meta_properties.read(str(tmp_path))
    assert (properties.version, properties.cluster_id, properties.node_id) == (1, "my-cluster", 1)
    assert properties.directory_id is not None and len(properties.directory_id) == 22
    a, also_a, b = (
        partition_metadata.read(str(tmp_path / name / "partition.metadata")).topic_id
        for name in ("a-0", "a-1", "b-0")
    )
    assert a == also_a != b
    assert uuid.UUID(int=0) not in (a, b)


def test_an_error_leaves_no_marker_of_a_clean_shutdown(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), new_log_dir(str(tmp_path), "test") as manager:
        append(manager.create(("t", 0)), ONE)
        raise KeyboardInterrupt
    names = {path.name for path in tmp_path.iterdir()}
    assert not names & {".kafka_cleanshutdown", "replication-offset-checkpoint"}


def test_nothing_that_exists_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    with pytest.raises(FileExistsError, match="is not empty"), new_log_dir(str(tmp_path), "test"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["something"]
