"""Partitions that are written, beside what Kafka leaves of the same appends (F-12 to F-15)."""

import json
import uuid
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.codecs.compression import Codec
from storage.formats import (
    checkpoint,
    meta_properties,
    offset_index,
    partition_metadata,
    time_index,
)
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, decode_records, encode_batch
from storage.log.log_dir import list_log_dir, log_end_offset
from storage.log.log_writer import LogDirWriter, LogSettings, LogWriter, Message, Producer
from storage.log.segment_reader import read_batch_headers, read_batches
from tests.storage.kafka_batches import KAFKAS_FILES

NOW = 1_700_000_000_000


def kafkas_appends(log: LogWriter) -> None:
    """What was appended to the log of KAFKAS_FILES."""
    log.append(
        [Message(b"a", b"1", NOW), Message(b"b", None, NOW - 1000)], producer=Producer(7, 2, 0)
    )
    log.append([Message(b"a", b"2", NOW + 500, ((b"h", b"x"), (b"", None)))], Codec.LZ4)
    log.leader_epoch = 3
    log.append([Message(b"c", b"3", NOW + 400)], Codec.ZSTD)
    two = [Message(b"d", b"4", NOW + 600), Message(b"e", b"5", NOW + 601)]
    log.append(two, Codec.GZIP, Producer(7, 2, 2))
    log.append([Message(b"f", b"6", NOW + 700)], Codec.SNAPPY)


def message(size: int, timestamp: int = NOW) -> Message:
    """In a batch of its own it takes that many bytes (F-5.5, with a length of two bytes)."""
    value = bytes(size - 70)
    assert 64 <= len(value) < 8000
    return Message(None, value, timestamp)


def base_offsets(partition: Path) -> list[int]:
    return sorted(int(path.stem) for path in partition.glob("*.log"))


def write(root: Path, settings: LogSettings, *messages: Message) -> list[int]:
    """Append each message as a batch of its own; the base offsets of the segments."""
    with LogDirWriter(str(root), "test") as log_dir:
        log = log_dir.create("t", 0, settings)
        for each in messages:
            log.append([each])
    return base_offsets(root / "t-0")


def test_a_partition_is_kafkas_to_the_byte(tmp_path: Path) -> None:
    root = tmp_path / "logs"
    with LogDirWriter(str(root), "test") as log_dir:
        kafkas_appends(
            log_dir.create("t", 0, LogSettings(segment_bytes=330, index_interval_bytes=0))
        )
    written = {path.name: path.read_bytes().hex() for path in (root / "t-0").iterdir()}
    del written["partition.metadata"]
    assert written == KAFKAS_FILES


def test_a_log_directory_has_what_a_broker_looks_for(tmp_path: Path) -> None:
    root = tmp_path / "logs"
    with LogDirWriter(str(root), "my-cluster", node_id=5) as log_dir:
        kafkas_appends(log_dir.create("some-topic", 3))
        log_dir.create("empty", 0)
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
    assert checkpoint.read(str(root / checkpoint.CLEANER_OFFSET)) == {}
    assert checkpoint.read(str(root / checkpoint.LOG_START)) == {}
    marker = json.loads((root / ".kafka_cleanshutdown").read_bytes())
    assert marker == {"version": 0, "brokerEpoch": -1}
    properties = meta_properties.read(str(root))
    assert (properties.version, properties.cluster_id, properties.node_id) == (1, "my-cluster", 5)
    assert properties.directory_id is not None and len(properties.directory_id) == 22
    ids = {
        partition_metadata.read(str(root / name / "partition.metadata")).topic_id
        for name in ("some-topic-3", "empty-0")
    }
    assert len(ids) == 2 and uuid.UUID(int=0) not in ids
    listing = list_log_dir(str(root))
    assert listing.has_clean_shutdown and listing.ignored == ()
    assert {(p.topic, p.partition): log_end_offset(p) for p in listing.partitions} == ends


def test_an_empty_log_has_an_empty_segment_and_no_snapshot(tmp_path: Path) -> None:
    """As Kafka leaves it; leader-epoch-checkpoint has 0 bytes (F-13)."""
    assert write(tmp_path / "logs", LogSettings()) == [0]
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "logs/t-0").iterdir()}
    assert sizes.pop("partition.metadata") > 0
    assert sizes == {
        "00000000000000000000.log": 0,
        "00000000000000000000.index": 0,
        "00000000000000000000.timeindex": 0,
        "leader-epoch-checkpoint": 0,
    }


def test_a_segment_takes_segment_bytes_exactly(tmp_path: Path) -> None:
    """F-12.7."""
    messages = [message(200)] * 5
    assert write(tmp_path / "a", LogSettings(segment_bytes=400), *messages) == [0, 2, 4]
    assert write(tmp_path / "b", LogSettings(segment_bytes=399), *messages) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match=r"a batch of 200 bytes, but segment.bytes is 199"):
        write(tmp_path / "c", LogSettings(segment_bytes=199), *messages)


def test_a_segment_spans_segment_ms_from_its_first_batch(tmp_path: Path) -> None:
    """F-12.7: rolls once the difference is larger, not when it is equal, nor back in time."""
    messages = [message(200, timestamp) for timestamp in (1000, 1100, 1101, 1050, 1201, 1202)]
    assert write(tmp_path / "a", LogSettings(segment_ms=100), *messages) == [0, 2, 5]
    without_time = [message(200, -1), message(200, 10**12)]
    assert write(tmp_path / "b", LogSettings(segment_ms=100), *without_time) == [0]


def test_a_segment_ends_when_an_index_is_full(tmp_path: Path) -> None:
    """F-10.4: 36 bytes are 4 offset entries, or 3 time entries of which one is kept back."""
    settings_ = LogSettings(segment_index_bytes=36, index_interval_bytes=0)
    rising = [message(200, NOW + number) for number in range(7)]
    assert write(tmp_path / "a", settings_, *rising) == [0, 3, 6]
    same = [message(200)] * 11
    assert write(tmp_path / "b", settings_, *same) == [0, 5, 10]


def test_a_segment_spans_no_more_than_31_bits_of_offsets(tmp_path: Path) -> None:
    """F-2.6, with batches as a follower gets them."""
    root = tmp_path / "logs"
    with LogDirWriter(str(root), "test") as log_dir:
        log = log_dir.create("t", 0)
        for offset in (10, 2**31 - 1, 2**31, 2**32):
            log.append_batch(encode_batch([Record(offset, NOW, b"k", b"v")]))
        assert log.next_offset == 2**32 + 1
    assert base_offsets(root / "t-0") == [0, 2**31, 2**32]
    snapshots = sorted(int(path.stem) for path in (root / "t-0").glob("*.snapshot"))
    assert snapshots == [2**31, 2**32, 2**32 + 1]


def test_a_roll_by_hand_needs_something_to_roll(tmp_path: Path) -> None:
    with LogDirWriter(str(tmp_path / "logs"), "test") as log_dir:
        log = log_dir.create("t", 0)
        log.roll()
        log.append([message(200)])
        log.roll()
        log.roll()
    assert base_offsets(tmp_path / "logs/t-0") == [0, 1]
    assert (tmp_path / "logs/t-0/00000000000000000001.snapshot").exists()


def test_log_append_time_stamps_the_header_only(tmp_path: Path) -> None:
    """As a broker does with what producers send: the deltas stay, and are not read (F-4.4)."""
    with LogDirWriter(str(tmp_path / "logs"), "test") as log_dir:
        log = log_dir.create("t", 0)
        log.append([message(200, 5), message(200, 9)], Codec.GZIP, log_append_time_ms=1000)
    path = str(tmp_path / "logs/t-0/00000000000000000000.log")
    ((position, header, batch),) = read_batches(path)
    assert header.is_log_append_time
    assert (header.base_timestamp, header.max_timestamp) == (5, 1000)
    records = decode_records(batch, header, path, position)
    assert [record.timestamp for record in records] == [1000, 1000]


def test_an_error_leaves_no_marker_of_a_clean_shutdown(tmp_path: Path) -> None:
    root = tmp_path / "logs"
    with pytest.raises(KeyboardInterrupt), LogDirWriter(str(root), "test") as log_dir:
        log_dir.create("t", 0).append([message(200)])
        raise KeyboardInterrupt
    assert {path.name for path in root.iterdir()} == {"t-0", "meta.properties"}


def test_nothing_that_exists_is_written_over(tmp_path: Path) -> None:
    write(tmp_path / "logs", LogSettings(), message(200))
    with pytest.raises(FileExistsError, match="is not empty"):
        LogDirWriter(str(tmp_path / "logs"), "test")
    with LogDirWriter(str(tmp_path / "other"), "test") as log_dir:
        log_dir.create("t", 0)
        with pytest.raises(FileExistsError):
            log_dir.create("t", 0)


@pytest.mark.parametrize(
    "options", [BatchOptions(is_transactional=True), BatchOptions(is_control=True)]
)
def test_transactions_are_not_written(tmp_path: Path, options: BatchOptions) -> None:
    batch = encode_batch([Record(0, NOW, b"k", b"v")], options=options)
    with (
        pytest.raises(AssertionError, match="no transactions"),
        LogDirWriter(str(tmp_path / "logs"), "test") as log_dir,
    ):
        log_dir.create("t", 0).append_batch(batch)


MESSAGES = st.builds(
    Message,
    st.none() | st.binary(max_size=10),
    st.none() | st.binary(max_size=60),
    st.integers(-1, 2000),
    st.just(()) | st.just(((b"h", None),)),
)


@settings(max_examples=30, deadline=None)
@given(
    batches=st.lists(
        st.tuples(st.lists(MESSAGES, min_size=1, max_size=4), st.sampled_from(list(Codec))),
        max_size=12,
    ),
    interval=st.sampled_from([0, 100, 4096]),
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[tuple[list[Message], Codec]],
    interval: int,
) -> None:
    root = tmp_path_factory.mktemp("written") / "logs"
    limits = LogSettings(segment_bytes=1000, segment_ms=1000, index_interval_bytes=interval)
    with LogDirWriter(str(root), "test") as log_dir:
        log = log_dir.create("t", 0, limits)
        for messages, codec in batches:
            log.append(messages, codec)
    expected = [m for messages, _ in batches for m in messages]
    records = []
    bases = base_offsets(root / "t-0")
    for base in bases:
        path = str(root / f"t-0/{base:020d}.log")
        found = [r for p, h, b in read_batches(path) for r in decode_records(b, h, path, p)]
        assert not found or found[0].offset == base
        records += found
    assert [record.offset for record in records] == list(range(len(expected)))
    assert [Message(r.key, r.value, r.timestamp, r.headers) for r in records] == expected
    assert all(first < second for first, second in pairwise(bases))
    _check_indexes(root / "t-0", bases)


def _check_indexes(partition: Path, bases: list[int]) -> None:
    """Each entry points at a batch with that last offset; the last time entry holds the largest."""
    for base in bases:
        stem = partition / f"{base:020d}"
        headers = dict(read_batch_headers(f"{stem}.log"))
        for relative, position in offset_index.read(f"{stem}.index").tolist():
            assert headers[position].last_offset == base + relative
        times = time_index.read(f"{stem}.timeindex").tolist()
        largest = max((h.max_timestamp for h in headers.values()), default=-1)
        assert (times[-1][0] if times else -1) == largest
