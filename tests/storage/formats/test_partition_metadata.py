"""Topic ids, spec F-13.5. The bytes in KAFKAS were written by Kafka 4.3.1."""

from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import CorruptFileError
from storage.formats import partition_metadata
from storage.formats.partition_metadata import PartitionMetadata, decode, encode

KAFKAS = b"version: 0\ntopic_id: AAAAAAAAAAcAAAAAAAAENQ"
TOPIC_ID = UUID("00000000-0000-0007-0000-000000000435")
PATH = "partition.metadata"


def test_a_file_of_kafkas_is_read_and_written_alike() -> None:
    assert decode(KAFKAS, PATH) == PartitionMetadata(0, TOPIC_ID)
    assert encode(PartitionMetadata(0, TOPIC_ID)) == KAFKAS


def test_a_later_version_and_a_newline_are_read() -> None:
    data = KAFKAS.replace(b"version: 0", b"version:   3") + b"\n"
    assert decode(data, PATH) == PartitionMetadata(3, TOPIC_ID)


@pytest.mark.parametrize("kept", range(len(KAFKAS)))
def test_a_file_cut_short_anywhere_is_corrupt(kept: int) -> None:
    with pytest.raises(CorruptFileError, match=r"partition\.metadata, byte"):
        decode(KAFKAS[:kept], PATH)


@pytest.mark.parametrize(
    "data",
    [
        b"version: -1\ntopic_id: AAAAAAAAAAcAAAAAAAAENQ",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",  # the id that means none
        b"version: 0\ntopic_id: AAAAAAAAAAcAAAAAAAAEN*",
        b"version: 0\ntopic_id: AAAAAAAAAAcAAAAAAAAENQ==",
        b"version:0\ntopic_id:AAAAAAAAAAcAAAAAAAAENQ",
        b"version: 0\ntopic_id: \xff",
    ],
)
def test_what_kafka_refuses_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode(data, PATH)


@given(st.uuids())
def test_what_is_written_is_read(topic_id: UUID) -> None:
    metadata = PartitionMetadata(0, topic_id)
    assert decode(encode(metadata), PATH) == metadata


def test_a_file_is_written_and_read(tmp_path: Path) -> None:
    path = str(tmp_path / PATH)
    partition_metadata.write(path, PartitionMetadata(0, TOPIC_ID))
    assert Path(path).read_bytes() == KAFKAS
    assert partition_metadata.read(path) == PartitionMetadata(0, TOPIC_ID)
