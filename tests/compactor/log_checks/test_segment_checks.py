"""Indexes held against their log: stale ones are found, sound ones of Kafka's kind are not."""

import struct
from pathlib import Path

import pytest

from compactor.log_checks.findings import Finding
from compactor.log_checks.segment_checks import check_segment
from storage.codecs.compression import Codec
from storage.file_names import INDEX, LOG, TIME_INDEX, TXN_INDEX, file_name
from storage.log.log_dir import list_partition
from tests.compactor.small_log import END_OFFSET, build, patch

HALF = END_OFFSET // 2


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return build(tmp_path / "log")


def findings(partition: Path, segment: int = 0) -> list[Finding]:
    segments = list_partition(str(partition), "orders", 0).segments
    next_base = segments[segment + 1].base_offset if segment + 1 < len(segments) else None
    return check_segment(str(partition), segments[segment], next_base)[0]


def one(partition: Path, segment: int = 0) -> Finding:
    [finding] = findings(partition, segment)
    return finding


def log_of(partition: Path, base_offset: int = 0) -> Path:
    return partition / file_name(base_offset, LOG)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("segment", [0, 1])
def test_a_sound_segment_has_no_findings(tmp_path: Path, codec: Codec, segment: int) -> None:
    assert findings(build(tmp_path / "log", codec), segment) == []


@pytest.mark.parametrize("suffix", [INDEX, TIME_INDEX])
def test_a_missing_index_is_found(partition: Path, suffix: str) -> None:
    """F-16.1, step 4."""
    (partition / file_name(0, suffix)).unlink()
    finding = one(partition)
    assert finding.path.endswith(suffix)
    assert "no such file" in finding.problem


def test_an_offset_index_may_be_empty(partition: Path) -> None:
    """F-9.3: readers then start at 0."""
    (partition / file_name(0, INDEX)).write_bytes(b"")
    assert findings(partition) == []


@pytest.mark.parametrize("suffix", [INDEX, TIME_INDEX, TXN_INDEX])
def test_an_entry_cut_short_is_found(partition: Path, suffix: str) -> None:
    path = partition / file_name(0, suffix)
    data = path.read_bytes() if path.exists() else b""
    path.write_bytes(data + b"\0\0\1")
    assert one(partition).position == len(data)


def test_an_index_of_another_log_is_found(partition: Path) -> None:
    """F-9.4: the entry points into the middle of a batch, where a reader finds rubbish."""
    index = partition / file_name(0, INDEX)
    _, position = struct.unpack_from(">ii", index.read_bytes(), 8)
    patch(index, 8 + 4, struct.pack(">i", position + 1))
    finding = one(partition)
    assert (finding.path, finding.position) == (str(index), 8)
    assert "does not lead to the start of a batch" in finding.problem


def test_an_index_that_makes_readers_skip_is_found(partition: Path) -> None:
    """F-9.4: a batch before the entry's position reaches the entry's offset."""
    index = partition / file_name(0, INDEX)
    first_offset, _ = struct.unpack_from(">ii", index.read_bytes())
    patch(index, 0, struct.pack(">i", first_offset - 3))
    finding = one(partition)
    assert finding.position == 0
    assert "would skip the batch before it, which reaches offset 2" in finding.problem


def test_an_entry_past_the_log_is_found(partition: Path) -> None:
    log = log_of(partition, HALF)
    size = log.stat().st_size
    data = (partition / file_name(HALF, INDEX)).read_bytes()
    (partition / file_name(HALF, INDEX)).write_bytes(data + struct.pack(">ii", HALF - 1, size))
    finding = one(partition, 1)
    assert finding.position == len(data)


def test_an_entry_of_an_older_broker_is_sound(partition: Path) -> None:
    """Before 4.1 an entry held the largest offset of an append of several batches (F-9.4)."""
    index = partition / file_name(0, INDEX)
    data = index.read_bytes()
    last_offset, _ = struct.unpack_from(">ii", data, len(data) - 16)
    index.write_bytes(data[:-16] + struct.pack(">i", last_offset + 3) + data[-12:-8])
    assert findings(partition) == []


def test_a_time_index_that_hides_younger_batches_is_found(partition: Path) -> None:
    """F-10.2: nothing before an entry is younger than it."""
    index = partition / file_name(0, TIME_INDEX)
    patch(index, 0, struct.pack(">q", 1004))
    finding = one(partition)
    assert (finding.path, finding.position) == (str(index), 0)
    assert "comes after a batch with timestamp 1005" in finding.problem


@pytest.mark.parametrize("cut_bytes", [12, 24, 48])
def test_a_last_time_entry_that_is_not_the_largest_is_found(
    partition: Path, cut_bytes: int
) -> None:
    """F-10.5, F-12.6: a broker takes the age of a finished segment from it."""
    index = partition / file_name(0, TIME_INDEX)
    index.write_bytes(index.read_bytes()[:-cut_bytes])
    assert "largest timestamp" in one(partition).problem
    assert one(partition).problem.endswith("the batches have 1014")


def test_the_active_segment_may_lack_its_last_time_entry(partition: Path) -> None:
    index = partition / file_name(HALF, TIME_INDEX)
    index.write_bytes(index.read_bytes()[:-12])
    assert findings(partition, 1) == []


def test_the_preallocated_indexes_of_an_active_segment_are_sound(partition: Path) -> None:
    """F-9.2: filled up with zeros."""
    for suffix, entry_bytes in ((INDEX, 8), (TIME_INDEX, 12)):
        path = partition / file_name(HALF, suffix)
        path.write_bytes(path.read_bytes() + bytes(1000 * entry_bytes))
    assert findings(partition, 1) == []


def test_a_segment_that_runs_into_the_next_is_found(partition: Path) -> None:
    """F-2.4."""
    (partition / file_name(HALF, LOG)).rename(partition / file_name(HALF - 1, LOG))
    for suffix in (INDEX, TIME_INDEX):
        (partition / file_name(HALF, suffix)).unlink()
        (partition / file_name(HALF - 1, suffix)).write_bytes(b"")
    finding = one(partition)
    assert finding.path == str(log_of(partition))
    assert finding.problem.startswith("last offset 14 is not below 14")


def test_a_txn_index_below_its_segment_is_found(partition: Path) -> None:
    """F-11.6."""
    entry = struct.pack(">hqqqq", 0, 7, 1, 3, 4)
    (partition / file_name(HALF, TXN_INDEX)).write_bytes(entry)
    assert one(partition, 1).problem == "last offset 3, expected 15 or more"


def test_indexes_are_only_held_against_what_could_be_read(partition: Path) -> None:
    """One damaged length, one finding."""
    _, position = struct.unpack_from(">ii", (partition / file_name(0, INDEX)).read_bytes(), 8)
    patch(log_of(partition), position + 16, b"\x09")
    assert [finding.position for finding in findings(partition)] == [position]
