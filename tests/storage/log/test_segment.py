"""A segment by itself: EE-20 to EE-34 of docs/spec/engine.md.

The batches 0-2 (88 bytes, times 10, 20, 30), 3 (70 bytes, 40) and 4-5 (79 bytes, 35, 36); what is
expected of them was seen in Kafka 4.3.1.
"""

import pytest

from storage.files.file_pool import pooled
from storage.files.files import Files
from storage.kafka_versions import BY_NAME
from storage.log.batches import in_memory
from storage.log.errors import (
    IllegalArgumentError,
    InvalidOffsetError,
)
from storage.log.log_config import LogConfig
from storage.log.segment import IncomingBytes, LogPlace, LogSegment
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
