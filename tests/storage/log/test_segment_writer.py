"""One segment: its three files as Kafka left them of the same batches, and when it is full."""

from pathlib import Path

import pytest

from storage.formats.record_batch import decode_header
from storage.log.segment_writer import SegmentWriter
from tests.storage.kafka_batches import KAFKAS_FILES
from tests.support.made_log import keyed
from tests.support.reference_batch import encode, split


def append(writer: SegmentWriter, *batches: bytes) -> None:
    for raw in batches:
        writer.append(decode_header(raw, 0, "made"), raw)


@pytest.mark.parametrize("base_offset", [0, 4])
def test_kafkas_files(tmp_path: Path, base_offset: int) -> None:
    """With index.interval.bytes 0: an entry for each batch but the first."""
    names = [f"{base_offset:020d}{kind}" for kind in (".log", ".index", ".timeindex")]
    expected = {name: bytes.fromhex(KAFKAS_FILES[name]) for name in names}
    writer = SegmentWriter(str(tmp_path), base_offset, 0)
    append(writer, *split(expected[names[0]]))
    assert writer.size_bytes == len(expected[names[0]])
    writer.finish()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == expected


def test_a_segment_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / f"{7:020d}.log").write_bytes(b"another's")
    with pytest.raises(FileExistsError):
        SegmentWriter(str(tmp_path), 7, 4096)


def test_one_that_is_abandoned_has_no_indexes(tmp_path: Path) -> None:
    writer = SegmentWriter(str(tmp_path), 0, 0)
    append(writer, encode(keyed(0, "a")))
    writer.abandon()
    assert [path.name for path in tmp_path.iterdir()] == [f"{0:020d}.log"]


@pytest.mark.parametrize(
    ("last_offset", "fits"),
    [(99, False), (100, True), (100 + 2**31 - 1, True), (100 + 2**31, False)],
)
def test_offsets_are_relative_to_the_base(tmp_path: Path, last_offset: int, fits: bool) -> None:
    writer = SegmentWriter(str(tmp_path), 100, 0)
    assert writer.fits(last_offset) is fits
    writer.abandon()


@pytest.mark.parametrize(("index_bytes", "full_after"), [(36, 3), (40, 3), (48, 4), (60, 5)])
def test_an_index_without_room_makes_it_full(
    tmp_path: Path, index_bytes: int, full_after: int
) -> None:
    """Entries have 8 and 12 bytes; the time index keeps room for one more; the first has none.

    36 bytes: 4 offsets, 3 - 1 times, which three batches use up. 40: 5, and still 3 - 1. 48: 6,
    and 4 - 1. 60: 7, and 5 - 1.
    """
    writer = SegmentWriter(str(tmp_path), 0, 0)
    batches = 0
    while not writer.is_full(index_bytes):
        append(writer, encode(keyed(batches, "a")))
        batches += 1
    writer.abandon()
    assert batches == full_after


def test_the_first_timestamp_is_that_of_the_first_batch(tmp_path: Path) -> None:
    writer = SegmentWriter(str(tmp_path), 0, 0)
    assert writer.first_timestamp == -1
    append(writer, encode(keyed(0, "ab")), encode(keyed(2, "c")))  # 100 + 10 ms for each offset
    writer.abandon()
    assert writer.first_timestamp == 110
