"""Files of batches: edge cases EE-1, EE-3 to EE-6, EE-18."""

import errno
import os
from pathlib import Path

import pytest

from storage.files.files import ChangingFile
from storage.files.local import LOCAL
from storage.log.errors import CorruptRecordError, IllegalArgumentError, KafkaError
from storage.log.file_records import FileRecords, next_offset
from tests.engine.replay.replayed import kernels_used
from tests.storage.log.batches_for_tests import batch
from tests.support.files.memory import MemoryFiles

PATH = "/00000000000000000000.log"


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def records(files: MemoryFiles) -> FileRecords:
    found = FileRecords.open(files, PATH)
    assert found.append(batch(0, 5)) == 70
    found.append(batch(1, 6))
    return found


def test_a_slice_is_a_range_of_what_is_in_use(records: FileRecords) -> None:
    """EE-1, EE-3."""
    assert records.slice(140, 5).size_bytes == 0
    assert records.slice(1, 2**31 - 1).size_bytes == 139
    assert records.slice(10, 20).size_bytes == 20
    for position, length in ((141, 0), (-1, 0), (0, -1)):
        with pytest.raises(IllegalArgumentError):
            records.slice(position, length)


def test_a_slice_gives_whole_batches(records: FileRecords) -> None:
    """EE-5; a slice of 17 bytes or fewer has none (L-2.6)."""
    assert [b.base_offset for b in records.slice(0, 139).batches()] == [0]
    assert [b.base_offset for b in records.slice(0, 140).batches()] == [0, 1]
    assert list(records.slice(0, 17).batches()) == []


def test_it_is_cut_off_within_its_size(files: MemoryFiles, records: FileRecords) -> None:
    """EE-6, L-2.10."""
    for size in (141, -1):
        with pytest.raises(KafkaError):
            records.truncate_to(size)
    modified = files.look_up(PATH)
    assert records.truncate_to(140) == 0
    assert files.look_up(PATH) == modified  # not even its time has changed
    assert records.truncate_to(70) == 70
    assert files.read_bytes(PATH) == batch(0, 5)


def test_more_than_a_segment_takes_is_not_written(records: FileRecords) -> None:
    """L-2.3."""
    records.size_bytes = 2**31 - 70
    with pytest.raises(IllegalArgumentError):
        records.append(batch(2, 7))


def test_a_preallocated_file_is_trimmed_when_it_is_closed(files: MemoryFiles) -> None:
    """EE-18."""
    records = FileRecords.open(files, PATH, is_new=True, initial_bytes=1000)
    assert (len(files.read_bytes(PATH)), records.size_bytes) == (1000, 0)
    records.append(batch(0, 5))
    assert (len(files.read_bytes(PATH)), records.size_bytes) == (1000, 70)
    records.close()
    records.close()  # a second time: nothing
    assert files.read_bytes(PATH) == batch(0, 5)


def test_a_range_is_read_as_far_as_the_file_goes(files: MemoryFiles) -> None:
    """L-2.4, L-2.2: its length in use is a count of its own."""
    records = FileRecords.open(files, PATH, is_new=True, initial_bytes=100)
    records.append(batch(0, 5))
    assert records.read(60, 20) == batch(0, 5)[60:] + bytes(10)
    assert records.read(90, 20) == bytes(10)
    assert records.slice(60, 20).read() == batch(0, 5)[60:]
    with pytest.raises(KafkaError):
        records.read_fully(90, 20)


def test_a_slice_does_not_grow(records: FileRecords) -> None:
    """L-2.5: the size is that of when it was taken."""
    taken = records.slice(70, 1000)
    records.append(batch(2, 7))
    assert (taken.size_bytes, taken.read()) == (70, batch(1, 6))


def test_what_goes_to_a_reader_is_the_slice(files: MemoryFiles) -> None:
    """L-2.12: as many bytes as are asked for, from its start; a file that was cut off meanwhile
    gives fewer, and whoever needs all of them is told."""
    records = FileRecords.open(files, PATH)
    records.append(batch(0, 5) + batch(1, 6))
    taken = records.slice(70, 70)
    sent = b"".join(records.read(taken.position + at, 20) for at in range(0, 60, 20))
    assert sent == batch(1, 6)[:60]
    records.truncate_to(100)
    assert taken.read() == batch(1, 6)[:30]
    with pytest.raises(KafkaError, match="70 bytes expected at byte 70, found 30"):
        records.read_fully(taken.position, taken.size_bytes)


def test_handles_are_closed_without_a_trim(files: MemoryFiles) -> None:
    """L-2.11."""
    records = FileRecords.open(files, PATH, is_new=True, initial_bytes=100)
    records.append(batch(0, 5))
    records.close_handle()
    assert len(files.read_bytes(PATH)) == 100
    again = FileRecords.open(files, PATH)
    again.truncate_to(70)
    again.trim()
    assert files.read_bytes(PATH) == batch(0, 5)


def test_a_time_is_looked_for_from_an_offset_on(records: FileRecords) -> None:
    """L-2.8, L-2.9."""
    assert records.search_for_timestamp(5, 0, 0) == (5, 0, 0)
    assert records.search_for_timestamp(5, 0, 1) == (6, 1, 0)
    assert records.search_for_timestamp(7, 0, 0) is None
    assert records.largest_timestamp_after(0) == (6, 1)
    assert records.largest_timestamp_after(140) == (-1, -1)


def test_a_file_past_two_gib_is_refused(tmp_path: Path) -> None:
    """L-2.1."""
    path = tmp_path / "0.log"
    with path.open("wb") as file:
        file.truncate(2**31)
    with pytest.raises(KafkaError, match="more than a segment can have"):
        FileRecords.open(LOCAL, str(path))
    os.truncate(path, 2**31 - 1)
    FileRecords.open(LOCAL, str(path)).close_handle()


class FullDisk:
    """An open file on a disk that takes half of what is written."""

    def __init__(self, file: ChangingFile) -> None:
        self._file = file
        self.read, self.truncate = file.read, file.truncate
        self.size, self.sync, self.close = file.size, file.sync, file.close
        self.held, self.renamed = file.held, file.renamed
        self.is_open = True

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        self._file.write(position, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), PATH)


def test_a_full_disk_leaves_nothing_of_an_append(files: MemoryFiles) -> None:
    """L-2.3, as it is done here."""
    FileRecords.open(files, PATH).append(batch(0, 5))
    records = FileRecords(FullDisk(files.open_to_change(PATH)), 70)
    with pytest.raises(OSError, match="No space left"):
        records.append(batch(1, 6))
    assert records.size_bytes == 70
    assert files.read_bytes(PATH) == batch(0, 5)


@pytest.mark.parametrize("flipped", [0x80, 0xFF])
def test_the_time_of_an_entry_with_a_negative_magic_is_asked_for_in_vain(
    files: MemoryFiles, flipped: int
) -> None:
    """As in Kafka, by `make test-engine-damage`; its offset is told."""
    data = bytearray(batch(7, 5))
    data[16] ^= flipped
    files.replace_file(PATH, bytes(data))
    (found,) = FileRecords.open(files, PATH).batches()
    assert found.last_offset == 7
    with pytest.raises(IllegalArgumentError):
        _ = found.max_timestamp


@pytest.mark.parametrize("with_kernels", [False, True])
@pytest.mark.parametrize("tail", range(23))
def test_where_the_next_read_begins_whatever_is_left_of_a_batch(
    tail: int, with_kernels: bool
) -> None:
    """F-3.4: from 12 bytes on its length is looked at, and from 17 on its magic."""
    whole = batch(7, 5)
    with kernels_used(with_kernels):
        assert next_offset(whole + batch(8, 6)[:tail]) == 8
        for length in (13, 0, -1):
            torn = bytes(8) + length.to_bytes(4, "big", signed=True) + bytes(11)
            if tail < 12:
                assert next_offset(whole + torn[:tail]) == 8
                continue
            with pytest.raises(CorruptRecordError):
                next_offset(whole + torn[:tail])
        other = whole[:16] + b"\x03" + whole[17:]
        if tail < 17:
            assert next_offset(whole + other[:tail]) == 8
        else:
            with pytest.raises(CorruptRecordError):
                next_offset(whole + other[:tail])
