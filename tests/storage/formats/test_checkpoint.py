"""Offset checkpoints, spec F-13. The bytes in KAFKAS were written by Kafka 4.3.1."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.formats import checkpoint, partition_metadata

KAFKAS = b"0\n1\nt 0 16809\n"
PATH = "cleaner-offset-checkpoint"


def test_a_file_of_kafkas_is_read_and_written_alike() -> None:  # F-13.1
    assert checkpoint.decode(KAFKAS, PATH) == {("t", 0): 16809}
    assert checkpoint.encode({("t", 0): 16809}) == KAFKAS


def test_entries_are_written_by_topic_then_partition_number() -> None:
    entries = {("b", 0): 1, ("a", 10): 2, ("a", 9): 3}
    assert checkpoint.encode(entries) == b"0\n3\na 9 3\na 10 2\nb 0 1\n"


@pytest.mark.parametrize("data", [b"", b"0\n", b"0", b"0\n0\n"])
def test_an_empty_file_or_only_a_version_has_no_entries(data: bytes) -> None:  # F-13.2
    assert checkpoint.decode(data, PATH) == {}


@pytest.mark.parametrize(
    "data",
    [
        b"0\n1\nt 0 5",  # Kafka's reader does not ask for the last line's end
        b"0\r\n1\r\nt 0 5\r\n",
        b"0\n1\nt\t0   5 \n",
        b"+0\n01\nt 00 +5\n",
        b"0\n2\nt 0 4\nt 0 5\n",  # the later line counts, F-13.3
    ],
)
def test_what_kafka_reads_is_read(data: bytes) -> None:
    assert checkpoint.decode(data, PATH) == {("t", 0): 5}


@pytest.mark.parametrize(
    ("data", "position", "problem"),
    [
        (b"x\n", 0, "'x' is not a 32-bit integer"),
        (b"\n", 0, "'' is not"),
        (b"0\nx\n", 2, "'x' is not"),
        (b"0\n 1\nt 0 5\n", 2, "' 1' is not"),
        (b"0\n2\nt 0 5\n", 2, "the count says 2, and lines with entries: 1"),
        (b"0\n0\nt 0 5\n", 2, "the count says 0, and lines with entries: 1"),
        (b"0\n-1\n", 2, "the count says -1, and lines with entries: 0"),
        (b"0\n1\nt 0\n", 4, "3 fields expected, found 2"),
        (b"0\n1\n t 0 5\n", 4, "3 fields expected, found 4"),
        (b"0\n2\nt 0 5\n\n", 10, "3 fields expected, found 1"),
        (b"0\n2\nt 0 5\nu 0 y\n", 10, "'y' is not a 64-bit integer"),
        (b"0\n1\nt 2147483648 5\n", 4, "is not a 32-bit integer"),
        (b"0\n1\nt 0 9223372036854775808\n", 4, "is not a 64-bit integer"),
        (b"0\n1\nt 0 1_0\n", 4, "'1_0' is not"),
        (b"0\n1\nt 0 " + b"9" * 5000, 4, "is not a 64-bit integer"),
        (b"0\n1\n\xff 0 5\n", 4, "not UTF-8"),
    ],
)
def test_what_kafka_refuses_is_corrupt(data: bytes, position: int, problem: str) -> None:  # F-13.2
    with pytest.raises(CorruptFileError, match=problem) as raised:
        checkpoint.decode(data, PATH)
    assert (raised.value.path, raised.value.position) == (PATH, position)


@pytest.mark.parametrize("data", [bytes(4096), b"0\n1\n" + b"t " * 4096])
def test_a_message_shows_no_more_than_the_beginning_of_what_is_there(data: bytes) -> None:
    with pytest.raises(CorruptFileError) as raised:
        checkpoint.decode(data, PATH)
    assert len(str(raised.value)) < 200
    with pytest.raises(CorruptFileError) as raised:
        partition_metadata.decode(b"version: 0\n" + data.replace(b"\n", b"") + b"\n", PATH)
    assert len(str(raised.value)) < 200


def test_another_version_is_not_supported() -> None:
    with pytest.raises(UnsupportedFormatError, match="version 1, expected 0"):
        checkpoint.decode(b"1\n1\nt 0 5\n", PATH)


@pytest.mark.parametrize("kept", range(len(KAFKAS)))
def test_a_file_cut_short_never_gives_an_offset_past_the_true_one(kept: int) -> None:
    try:
        entries = checkpoint.decode(KAFKAS[:kept], PATH)
    except CorruptFileError:
        return
    assert entries.keys() <= {("t", 0)}
    assert entries.get(("t", 0), 0) <= 16809


@given(
    st.dictionaries(
        st.tuples(
            st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.integers(0, 2**31 - 1)
        ),
        st.integers(0, 2**63 - 1),
    )
)
def test_what_is_written_is_read(entries: dict[checkpoint.TopicPartition, int]) -> None:
    assert checkpoint.decode(checkpoint.encode(entries), PATH) == entries


def test_a_checkpoint_that_is_not_there_or_is_empty_has_no_entries(tmp_path: Path) -> None:
    path = tmp_path / checkpoint.CLEANER_OFFSET
    assert checkpoint.read(str(path)) == {}
    path.touch()
    assert checkpoint.read(str(path)) == {}


def test_a_checkpoint_is_written_in_place_of_the_old_one(tmp_path: Path) -> None:  # F-13.3
    path = tmp_path / checkpoint.CLEANER_OFFSET
    path.write_bytes(KAFKAS)
    checkpoint.write(str(path), {("u", 1): 7})
    assert path.read_bytes() == b"0\n1\nu 1 7\n"
    assert checkpoint.read(str(path)) == {("u", 1): 7}
    assert os.listdir(tmp_path) == [checkpoint.CLEANER_OFFSET]
