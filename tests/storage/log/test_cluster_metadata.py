"""The state of a cluster, from metadata logs that are written here record by record."""

import os
from pathlib import Path
from uuid import UUID

import pytest

from storage.errors import CorruptFileError
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from storage.log.cluster_metadata import (
    ClusterMetadata,
    SnapshotUse,
    TopicImage,
    newest_snapshot,
    nothing_read,
    read_cluster_metadata,
)

A, B = UUID(int=1 << 64 | 2), UUID(int=3 << 64 | 4)
BEGIN, END, ABORT = b"\1\x17\0\0", b"\1\x18\0\0", b"\1\x19\0\0"


def text(value: str | None) -> bytes:
    return b"\0" if value is None else bytes([len(value) + 1]) + value.encode()


def topic(name: str, topic_id: UUID) -> bytes:
    return b"\1\2\0" + text(name) + topic_id.bytes + b"\0"


def removal(topic_id: UUID) -> bytes:
    return b"\1\x09\0" + topic_id.bytes + b"\0"


def config(name: str, value: str | None, resource: str = "t", kind: int = 2) -> bytes:
    return b"\1\4\0" + bytes([kind]) + text(resource) + text(name) + text(value) + b"\0"


def partition(number: int, topic_id: UUID) -> bytes:
    """Of replica 1 in directory B."""
    replicas = b"\2\0\0\0\1"
    leaders = b"\0\0\0\1" + bytes(8)
    return (
        b"\1\3\1"
        + number.to_bytes(4, "big")
        + topic_id.bytes
        + replicas
        + replicas
        + b"\1\1"
        + leaders
        + b"\2"
        + B.bytes
        + b"\0"
    )


def batches(base: int, *values: bytes) -> bytes:
    """A batch for each value, from an offset on."""
    return b"".join(
        encode_batch([Record(base + n, 1000, None, value)]) for n, value in enumerate(values)
    )


def control(offset: int, kind: int) -> bytes:
    key = b"\0\0" + kind.to_bytes(2, "big")
    return encode_batch([Record(offset, 1000, key, b"\0\0")], options=BatchOptions(is_control=True))


def log(directory: Path, base: int, data: bytes) -> Path:
    path = directory / f"{base:020}.log"
    path.write_bytes(data)
    return path


def migration(state: int) -> bytes:
    return b"\1\x15\0" + bytes([state]) + b"\0"


def snapshot(
    directory: Path, end: int, *values: bytes, whole: bool = True, time_ms: int = 0
) -> None:
    header = Record(0, 1000, b"\0\0\0\3", b"\0\0" + time_ms.to_bytes(8, "big") + b"\0")
    data = encode_batch([header], options=BatchOptions(is_control=True)) + batches(1, *values)
    data += control(1 + len(values), 4) if whole else b""
    (directory / f"{end:020}-{1:010}.checkpoint").write_bytes(data)


def read(directory: Path) -> ClusterMetadata:
    return read_cluster_metadata(str(directory))


def configs_of(directory: Path) -> dict[str, dict[str, str]]:
    return {name: dict(values) for name, values in read(directory).topic_configs.items()}


def test_a_topic_its_partitions_and_its_configuration(tmp_path: Path) -> None:
    values = [topic("t", A), partition(0, A), partition(1, A), config("x", "1"), config("y", "2")]
    data = control(0, 2) + batches(1, *values)
    log(tmp_path, 0, data)
    assert read(tmp_path) == ClusterMetadata(
        path=str(tmp_path),
        end_offset=6,
        topics={"t": TopicImage(A, {0: (1,), 1: (1,)}, {0: (B,), 1: (B,)})},
        topic_configs={"t": {"x": "1", "y": "2"}},
        broker_configs={},
        broker_log_dirs={},
        broker_versions={},
        unread=None,
        time_ms=1000,
    )


def test_what_is_unset_is_gone_and_the_later_value_counts(tmp_path: Path) -> None:
    changes = [config("x", "1"), config("y", "1"), config("x", None), config("y", "2")]
    log(tmp_path, 0, batches(0, topic("t", A), *changes))
    assert configs_of(tmp_path) == {"t": {"y": "2"}}


def test_settings_of_brokers_stand_apart(tmp_path: Path) -> None:
    settings = [
        config("n", "all", "", 4),
        config("n", "one", "1", 4),
        config("n", "groups", "g", 32),
    ]
    log(tmp_path, 0, batches(0, *settings))
    found = read(tmp_path)
    assert found.broker_configs == {"": {"n": "all"}, "1": {"n": "one"}}
    assert not found.topic_configs


def test_a_deleted_topic_takes_its_configuration_with_it(tmp_path: Path) -> None:
    again = [topic("t", A), config("x", "1"), removal(A), topic("t", B)]
    log(tmp_path, 0, batches(0, *again))
    found = read(tmp_path)
    assert found.topics == {"t": TopicImage(B, {}, {})}
    assert not found.topic_configs


def test_a_transaction_counts_when_it_has_ended(tmp_path: Path) -> None:
    ended = [BEGIN, config("x", "ended"), END]
    aborted = [BEGIN, config("x", "aborted"), ABORT]
    left_open = [BEGIN, config("x", "open")]
    log(tmp_path, 0, batches(0, topic("t", A), *ended, *aborted, *left_open))
    assert configs_of(tmp_path) == {"t": {"x": "ended"}}


def test_the_newest_snapshot_stands_for_all_below_it(tmp_path: Path) -> None:
    """Of the log only what is not in it is read: below it stands what no record can be."""
    snapshot(tmp_path, 2, topic("t", A), config("x", "old"))
    snapshot(tmp_path, 4, topic("t", A), config("x", "snapshot"), config("y", "snapshot"))
    (tmp_path / f"{6:020}-{1:010}.checkpoint.part").write_bytes(b"half")
    log(tmp_path, 0, b"no batch, and not read")
    log(tmp_path, 2, batches(2, b"no record", b"no record", config("x", "log")))
    found = read(tmp_path)
    assert dict(found.topic_configs["t"]) == {"x": "log", "y": "snapshot"}
    assert found.end_offset == 5


def test_a_snapshot_without_a_log_is_enough(tmp_path: Path) -> None:
    snapshot(tmp_path, 4, topic("t", A), config("x", "1"))
    assert (configs_of(tmp_path), read(tmp_path).end_offset) == ({"t": {"x": "1"}}, 4)


def test_a_snapshot_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    snapshot(tmp_path, 4, topic("t", A), whole=False)
    with pytest.raises(CorruptFileError, match="a snapshot without its end"):
        read(tmp_path)


def test_a_torn_snapshot_is_read_as_a_broker_does_and_as_if_it_were_removed(tmp_path: Path) -> None:
    """Seen with a broker 4.3.1. It does not start where the first batch is cut, or one damaged."""
    snapshot(tmp_path, 4, topic("t", A), config("x", "1"), config("x", "2"), whole=False)
    log(tmp_path, 0, batches(0, topic("t", A), config("x", "log")))
    (path,) = tmp_path.glob("*.checkpoint")
    assert newest_snapshot(str(tmp_path)) == str(path)
    data = path.read_bytes()
    believed = {len(data): "2", len(data) - 1: "1", len(data) - 9: "1"}
    for size, value in believed.items():
        path.write_bytes(data[:size])
        found = read_cluster_metadata(str(tmp_path), newest=SnapshotUse.AS_A_BROKER)
        assert (found.topic_configs["t"], found.end_offset) == ({"x": value}, 4)
        older = read_cluster_metadata(str(tmp_path), newest=SnapshotUse.LEFT_OUT)
        assert (older.topic_configs["t"], older.end_offset) == ({"x": "log"}, 2)
    for damaged in (b"", data[:40], bytes(len(data)), data[:-1] + b"\xff"):
        path.write_bytes(damaged)
        with pytest.raises(CorruptFileError):
            read_cluster_metadata(str(tmp_path), newest=SnapshotUse.AS_A_BROKER)


def test_a_log_that_does_not_go_on_where_the_snapshot_ends_is_refused(tmp_path: Path) -> None:
    snapshot(tmp_path, 4, topic("t", A))
    log(tmp_path, 6, batches(6, config("x", "1")))
    with pytest.raises(CorruptFileError, match="begins at offset 6, and nothing tells of 4 to 5"):
        read(tmp_path)


def test_an_unclean_end_is_where_the_reading_ends(tmp_path: Path) -> None:
    """As a broker that starts would: it cuts there."""
    sound = batches(0, topic("t", A), config("x", "1"))
    torn = batches(2, config("x", "2"))
    changed_length = torn[:9] + b"\1" + torn[10:]  # as if 65,536 bytes more were to follow
    cut_short = [(torn[:size], True) for size in range(1, len(torn))]
    damaged = (bytes(100), b"\xff" * 100, torn[:-1] + b"\1", changed_length)
    for tail, is_torn in (*cut_short, *((each, False) for each in damaged)):
        log(tmp_path, 0, sound + tail)
        found = read(tmp_path)
        assert found.is_torn is is_torn, tail
        assert (dict(found.topic_configs["t"]), found.end_offset) == ({"x": "1"}, 2)
        assert found.unread is not None
        assert f"byte {len(sound)}: " in found.unread


def test_damage_before_sound_batches_is_an_error(tmp_path: Path) -> None:
    """Else a topic would go back to an older policy, without a word."""
    one, two = batches(0, topic("t", A), config("x", "1")), batches(2, config("x", "2"))
    damaged = bytearray(one + two)
    damaged[len(one) - 2] ^= 1
    log(tmp_path, 0, bytes(damaged))
    with pytest.raises(CorruptFileError, match="CRC"):
        read(tmp_path)


def test_damage_in_a_segment_that_is_not_the_last_is_an_error(tmp_path: Path) -> None:
    log(tmp_path, 0, batches(0, topic("t", A), config("x", "1"))[:-1])
    log(tmp_path, 2, batches(2, config("x", "2")))
    with pytest.raises(CorruptFileError, match="cut short"):
        read(tmp_path)


def test_a_record_of_an_unknown_version_is_an_error_with_its_offset(tmp_path: Path) -> None:
    path = log(tmp_path, 0, batches(0, topic("t", A), b"\1\4\1"))
    with pytest.raises(CorruptFileError) as raised:
        read(tmp_path)
    assert raised.value.path == str(path)
    assert raised.value.problem == "offset 1: ConfigRecord of version 1: versions up to 0 are known"


def test_a_segment_that_a_snapshot_replaces_meanwhile_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log(tmp_path, 0, batches(0, topic("t", A), config("x", "log")))
    os_open = os.open

    def open_late(name: str, *rest: int, **more: int) -> int:
        if str(name).endswith(path.name) and path.exists():
            path.unlink()
            snapshot(tmp_path, 3, topic("t", A), config("x", "snapshot"))
            log(tmp_path, 3, b"")
        return os_open(name, *rest, **more)

    monkeypatch.setattr(os, "open", open_late)
    assert configs_of(tmp_path) == {"t": {"x": "snapshot"}}


def test_a_directory_without_segments_and_snapshots_says_nothing(tmp_path: Path) -> None:
    assert read(tmp_path) == nothing_read(str(tmp_path))


def test_a_snapshot_stands_alone_where_the_log_does_not_reach_it(tmp_path: Path) -> None:
    snapshot(tmp_path, 3, topic("t", A))
    assert read(tmp_path).is_snapshot_alone
    path = log(tmp_path, 0, batches(0, *[topic("o", B)] * 2))
    assert read(tmp_path).is_snapshot_alone
    log(tmp_path, 0, batches(0, *[topic("o", B)] * 3))
    assert not read(tmp_path).is_snapshot_alone
    path.write_bytes(b"")
    assert read(tmp_path).is_snapshot_alone


def test_the_time_is_that_of_the_last_record(tmp_path: Path) -> None:
    """A snapshot names it in its header, whenever it was made itself."""
    snapshot(tmp_path, 3, topic("t", A), time_ms=777)
    assert read(tmp_path).time_ms == 777
    log(tmp_path, 3, batches(3, topic("o", B)))
    assert read(tmp_path).time_ms == 1000


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (None, (False, False)),
        (0, (False, False)),
        (1, (True, False)),
        (2, (True, False)),
        (3, (False, True)),
    ],
)
def test_how_far_a_migration_from_zookeeper_has_come(
    tmp_path: Path, state: int | None, expected: tuple[bool, bool]
) -> None:
    log(tmp_path, 0, batches(0, topic("t", A), *([] if state is None else [migration(state)])))
    found = read(tmp_path)
    assert (found.is_migrating, found.is_migrated) == expected


def test_there_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none")
