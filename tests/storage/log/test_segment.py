"""A segment by itself: EE-20 to EE-34 of docs/spec/engine.md, and its rules, L-8 to L-11.

The batches 0-2 (88 bytes, times 10, 20, 30), 3 (70 bytes, 40) and 4-5 (79 bytes, 35, 36); what is
expected of them was seen in Kafka 4.3.1.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage.files.file_pool import pooled
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats.index_entry import OffsetPosition
from storage.kafka_versions import BY_NAME
from storage.log.batches import Batch, in_memory
from storage.log.errors import (
    CorruptIndexError,
    IllegalArgumentError,
    InvalidOffsetError,
    KafkaError,
    LogSegmentOffsetOverflowError,
)
from storage.log.log_config import LogConfig
from storage.log.segment import IncomingBytes, LogPlace, LogSegment
from storage.log.segment_recovery import recover
from tests.engine.replay.replayed import kernels_used
from tests.storage.log.batches_for_tests import EDGE_BATCHES, batch
from tests.support.files.memory import MemoryFiles

SIZE = 237
NOW_MS = 1_700_000_000_000


@pytest.fixture
def files() -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory("/t-0")
    return files


def opened(
    files: Files, config: LogConfig, base: int = 0, is_new: bool = True, path: str = "/t-0"
) -> LogSegment:
    """As Kafka 4.3 does it, where the versions differ."""
    place = LogPlace(pooled(files), path, lambda: NOW_MS, BY_NAME["4.3"])
    return LogSegment(place, base, config, is_new)


def append(segment: LogSegment, data: bytes) -> None:
    batches = list(in_memory(data))
    segment.append(batches[-1].last_offset, data, batches)


@pytest.fixture
def segment(files: MemoryFiles) -> LogSegment:
    made = opened(files, LogConfig(index_interval_bytes=1))
    for data in EDGE_BATCHES:
        append(made, data)
    return made


@pytest.mark.parametrize(
    ("start", "most", "limit", "min_one", "offset", "position", "size", "incomplete"),
    [
        pytest.param(1, 1000, SIZE, False, 0, 0, 237, False, id="EE-20"),
        pytest.param(1, 0, SIZE, False, 0, 0, 0, False, id="EE-21"),
        pytest.param(1, 0, SIZE, True, 0, 0, 88, False, id="EE-22"),
        pytest.param(1, 1, SIZE, False, 0, 0, 1, True, id="EE-23"),
        pytest.param(0, 87, SIZE, False, 0, 0, 87, True, id="EE-24, one byte less"),
        pytest.param(0, 88, SIZE, False, 0, 0, 88, False, id="EE-24, the batch"),
        pytest.param(3, 100, None, True, 3, 88, 0, False, id="EE-25"),
        pytest.param(0, 1000, 50, False, 0, 0, 50, False, id="EE-27"),
        pytest.param(0, 1000, 50, True, 0, 0, 50, False, id="EE-27, at least one message"),
    ],
)
def test_a_read_gives_this_much(
    segment: LogSegment,
    start: int,
    most: int,
    limit: int | None,
    min_one: bool,
    offset: int,
    position: int,
    size: int,
    incomplete: bool,
) -> None:
    """L-9.2, L-9.3."""
    found = segment.read(start, most, limit, min_one)
    assert found is not None
    assert found.metadata == (offset, 0, position)
    data = b"" if found.records is None else found.records.read()
    assert data == b"".join(EDGE_BATCHES)[position : position + size]
    assert found.first_entry_incomplete is incomplete


def test_a_read_past_the_last_batch_gives_none(segment: LogSegment) -> None:
    """EE-28."""
    assert segment.read(6, 0, SIZE) is None
    assert segment.read(6, 1000, SIZE) is None


def test_a_read_is_refused(segment: LogSegment) -> None:
    """EE-26, EE-29: a limit before the batch, and a negative size, also where there is none."""
    with pytest.raises(IllegalArgumentError):
        segment.read(3, 100, 0, True)
    for start in (0, 60):
        with pytest.raises(IllegalArgumentError):
            segment.read(start, -1, SIZE)


def test_entries_stand_before_the_batches_that_they_are_for(
    files: MemoryFiles, segment: LogSegment
) -> None:
    """EE-30."""
    segment.close()
    entries = ((3, 88), (5, 158))
    packed = b"".join(o.to_bytes(4, "big") + p.to_bytes(4, "big") for o, p in entries)
    assert files.read_bytes("/t-0/00000000000000000000.index") == packed
    time = (40).to_bytes(8, "big") + (3).to_bytes(4, "big")
    assert files.read_bytes("/t-0/00000000000000000000.timeindex") == time


@pytest.mark.parametrize(
    ("time", "from_offset", "found"),
    [
        pytest.param(0, 0, (10, 0), id="EE-31"),
        pytest.param(11, 0, (20, 1), id="EE-31, within a batch"),
        pytest.param(31, 0, (40, 3), id="EE-31, in the next batch"),
        pytest.param(40, 0, (40, 3), id="EE-31, the time itself"),
        pytest.param(41, 0, None, id="EE-31, past all"),
        pytest.param(35, 4, (35, 4), id="EE-32"),
    ],
)
def test_a_record_is_found_by_time(
    segment: LogSegment, time: int, from_offset: int, found: tuple[int, int] | None
) -> None:
    """L-10.3."""
    record = segment.find_offset(time, from_offset)
    assert (None if record is None else record[:2]) == found


def test_an_index_entry_above_every_offset_makes_it_look_empty(
    files: MemoryFiles, segment: LogSegment
) -> None:
    """EE-33, L-9.4."""
    assert segment.next_offset() == 6
    segment.offset_index.append(99, 0)
    assert segment.next_offset() == 0
    assert opened(files, LogConfig(), base=7).next_offset() == 7


def test_an_index_that_refuses_its_entry_leaves_the_bytes(segment: LogSegment) -> None:
    """EE-34, L-8.2."""
    before = segment.size_bytes
    segment.offset_index.append(99, 0)
    with pytest.raises(InvalidOffsetError):
        append(segment, batch(6, 50))
    assert segment.size_bytes == before + 70


def test_nothing_is_appended_of_nothing_and_of_what_is_too_far(segment: LogSegment) -> None:
    """L-8.2: the range is looked at before anything is written."""
    segment.append(-1, b"", [])
    with pytest.raises(LogSegmentOffsetOverflowError):
        append(segment, batch(2**31, 50))
    assert segment.size_bytes == SIZE


def test_it_has_an_index_with_its_first_append(files: MemoryFiles) -> None:
    """L-8.2, L-8.3, L-4.8: the `.log` is there at once, the rest when it is asked for."""
    segment = opened(files, LogConfig(segment_index_bytes=80))
    names = [entry.name for entry in files.list_directory("/t-0")]
    assert names == ["00000000000000000000.log"]
    append(segment, batch(0, 5))
    sizes = {entry.name[20:]: entry.size_bytes for entry in files.list_directory("/t-0")}
    assert sizes == {".log": 70, ".index": 80, ".timeindex": 72}


@pytest.mark.parametrize(
    ("offset", "found"), [(0, (0, 0, 88)), (2, (0, 0, 88)), (3, (3, 88, 70)), (6, None)]
)
def test_an_offset_has_the_place_of_its_batch(
    segment: LogSegment, offset: int, found: tuple[int, int, int] | None
) -> None:
    """L-9.1."""
    assert segment.translate(offset) == found


def test_an_offset_in_a_gap_has_the_place_of_the_next_batch(files: MemoryFiles) -> None:
    """L-9.1, L-19.5."""
    segment = opened(files, LogConfig())
    append(segment, batch(0, 5))
    append(segment, batch(9, 5))
    assert segment.translate(4) == (9, 70, 70)


def test_the_upper_bound_is_that_of_the_positions(segment: LogSegment) -> None:
    """L-9.5, L-5.2."""
    assert segment.upper_bound(OffsetPosition(0, 0), 88) is not None
    assert segment.upper_bound(OffsetPosition(0, 0), 158) == 5
    assert segment.upper_bound(OffsetPosition(0, 0), 159) is None


def test_the_largest_time_is_that_of_records_else_of_the_file(files: MemoryFiles) -> None:
    """L-10.1."""
    segment = opened(files, LogConfig())
    append(segment, batch(0, -1))
    segment.set_last_modified(77_000)
    assert segment.largest_so_far.timestamp_ms == -1
    assert (segment.last_modified_ms, segment.largest_timestamp) == (77_000, 77_000)
    append(segment, batch(1, 5))
    assert segment.largest_timestamp == 5
    files.remove("/t-0/00000000000000000000.log")
    assert segment.last_modified_ms == 0


@pytest.mark.parametrize(
    ("incoming", "rolls"),
    [
        pytest.param((70, 10, 6), False, id="as much as the segment takes"),
        pytest.param((71, 10, 6), True, id="a byte more"),
        pytest.param((70, 130, 6), False, id="at the age, by the times of records"),
        pytest.param((70, 131, 6), True, id="past it"),
        pytest.param((70, -1, 6), False, id="without a time"),
        pytest.param((70, 10, 2**31 - 1), False, id="the last offset that fits"),
        pytest.param((70, 10, 2**31), True, id="one that does not"),
    ],
)
def test_when_it_is_rolled(
    segment: LogSegment, incoming: tuple[int, int, int], rolls: bool
) -> None:
    """L-11.5, L-10.2: all comparisons are strict, and by the configuration of now."""
    config = LogConfig(segment_bytes=SIZE + 70, segment_ms=100)
    assert segment.should_roll(IncomingBytes(*incoming), config) is rolls


@pytest.mark.parametrize(("drawn", "waited"), [(0, 100), (49, 51)])
def test_each_segment_is_rolled_at_an_age_of_its_own(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch, drawn: int, waited: int
) -> None:
    """L-8.1: less than segment.jitter.ms earlier, drawn when the segment is opened."""
    asked: list[int] = []

    def draw(end: int) -> int:
        asked.append(end)
        return drawn

    monkeypatch.setattr("random.randrange", draw)
    config = LogConfig(segment_ms=100, segment_jitter_ms=50)
    segment = opened(files, config)
    append(segment, batch(0, 1000))
    assert not segment.should_roll(IncomingBytes(70, 1000 + waited, 1), config)
    assert segment.should_roll(IncomingBytes(70, 1001 + waited, 1), config)
    assert asked == [50]
    opened(files, LogConfig(segment_ms=20, segment_jitter_ms=50), is_new=False)
    assert asked == [50, 20]


def test_a_full_index_rolls_it(files: MemoryFiles) -> None:
    """L-11.5, L-6.1: the time index is full with one slot left."""
    segment = opened(files, LogConfig(index_interval_bytes=0, segment_index_bytes=24))
    incoming = IncomingBytes(70, 5, 9)
    append(segment, batch(0, 5))
    assert not segment.should_roll(incoming, LogConfig())
    append(segment, batch(1, 6))
    assert (segment.offset_index.entries, segment.offset_index.file.max_entries) == (1, 3)
    assert segment.should_roll(incoming, LogConfig())


def test_a_truncation_cuts_whole_batches(segment: LogSegment) -> None:
    """L-11.4: the batch that holds the offset goes, the indexes are cut, the time is read anew."""
    assert segment.truncate_to(5) == 79
    assert segment.size_bytes == 158
    assert segment.offset_index.entries == 1
    assert segment.truncate_to(3) == 70
    assert segment.largest_so_far == (30, 2)
    assert segment.truncate_to(3) == 0
    assert segment.truncate_to(1) == 88
    assert segment.size_bytes == 0
    assert segment.largest_so_far == (-1, 0)


class Recovered:
    """What a recovery tells beside the segment."""

    latest_epoch = 0

    def __init__(self) -> None:
        self.end_offset = 0

    def take(self, batch: Batch) -> None:
        self.end_offset = batch.last_offset + 1

    def pass_over(self, end_offset: int) -> None:
        self.end_offset = end_offset


@pytest.fixture(params=[False, True], ids=["batch by batch", "by kernels"])
def recovery(request: pytest.FixtureRequest) -> Iterator[Recovered]:
    with kernels_used(request.param):
        yield Recovered()


@pytest.fixture
def on_disk(tmp_path: Path) -> Callable[[bytes, LogConfig], LogSegment]:
    """Opens a segment of a file that kernels can read themselves."""

    def on_disk(data: bytes, config: LogConfig) -> LogSegment:
        (tmp_path / "00000000000000000000.log").write_bytes(data)
        return opened(LOCAL, config, is_new=False, path=str(tmp_path))

    return on_disk


def test_a_recovery_makes_indexes_anew_and_cuts_off_what_is_damaged(
    on_disk: Callable[[bytes, LogConfig], LogSegment], recovery: Recovered, tmp_path: Path
) -> None:
    """L-11.1, L-11.2: a torn tail and a wrong checksum end the log before them."""
    data = bytearray(b"".join(EDGE_BATCHES))
    data[157] ^= 1  # the last byte of the second batch
    (tmp_path / "00000000000000000000.index").write_bytes(bytes(80))
    again = on_disk(bytes(data), LogConfig(index_interval_bytes=1))
    assert recover(again, recovery) == (0, 88, 149, 3, None)
    assert (again.size_bytes, recovery.end_offset, again.next_offset()) == (88, 3, 3)
    assert again.time_index.last == (30, 2)
    again = on_disk(bytes(data[:88]) + b"\0" * 11, LogConfig())
    assert recover(again, recovery) == (0, 88, 11, 3, None)


def test_a_recovery_finds_falling_offsets_only_at_an_index_entry(
    on_disk: Callable[[bytes, LogConfig], LogSegment], recovery: Recovered
) -> None:
    """L-11.3."""
    data = batch(0, 5) + batch(5, 6) + batch(3, 7) + batch(9, 8)
    third = len(batch(0, 5) + batch(5, 6))
    with pytest.raises(InvalidOffsetError) as error:
        recover(on_disk(data, LogConfig(index_interval_bytes=1)), recovery)
    assert error.value.place == (0, third)
    assert recover(on_disk(data, LogConfig()), recovery) == (0, len(data), 0, 10, third)


def test_a_recovery_does_not_catch_an_offset_that_does_not_fit(
    on_disk: Callable[[bytes, LogConfig], LogSegment], recovery: Recovered
) -> None:
    """L-11.1."""
    data = batch(0, 5) + batch(2**31, 6)
    with pytest.raises(LogSegmentOffsetOverflowError):
        recover(on_disk(data, LogConfig()), recovery)


def test_closing_adds_the_last_time_where_it_is_known(files: MemoryFiles) -> None:
    """L-11.6."""
    segment = opened(files, LogConfig())
    append(segment, batch(0, 5))
    segment.close()
    path = "/t-0/00000000000000000000.timeindex"
    assert files.read_bytes(path) == (5).to_bytes(8, "big") + (0).to_bytes(4, "big")
    assert files.read_bytes("/t-0/00000000000000000000.index") == b""


def test_all_its_files_are_renamed_and_removed(files: MemoryFiles, segment: LogSegment) -> None:
    """L-11.7, L-11.8: also where one of them is gone."""
    segment.change_suffix("", ".deleted")
    assert segment.is_deleted
    names = {entry.name for entry in files.list_directory("/t-0")}
    stem = "00000000000000000000"
    assert names == {f"{stem}.{kind}.deleted" for kind in ("log", "index", "timeindex")}
    with pytest.raises(AssertionError):
        segment.change_suffix(".cleaned", "")
    files.remove(os.path.join("/t-0", f"{stem}.timeindex.deleted"))
    segment.delete()
    assert files.list_directory("/t-0") == []


def test_what_loading_looks_at(files: MemoryFiles, segment: LogSegment) -> None:
    """L-25.2: that there is an index, and the index of aborted transactions; not what is in the
    others."""
    segment.close()
    index = "/t-0/00000000000000000000.index"
    files.replace_file(index, b"\xff" * 15)
    opened(files, LogConfig(), is_new=False).check(False)
    files.remove(index)
    with pytest.raises(FileNotFoundError):
        opened(files, LogConfig(), is_new=False).check(False)
    files.replace_file(index, b"")
    stem = "/t-0/00000000000000000000"
    files.replace_file(f"{stem}.txnindex", b"\0\1" + b"\0" * 32)
    opened(files, LogConfig(), is_new=False).check(False)
    files.replace_file(f"{stem}.txnindex", b"\1" + b"\0" * 33)
    with pytest.raises(KafkaError, match="version"):
        opened(files, LogConfig(), is_new=False).check(False)
    for kind in ("log", "index", "txnindex"):
        files.replace_file(f"/t-0/{5:020}.{kind}", b"\0" * 34)
    with pytest.raises(CorruptIndexError):
        opened(files, LogConfig(), base=5, is_new=False).check(False)
