"""Leader epochs, spec F-13. The bytes in KAFKAS were written by Kafka 4.3.1."""

from pathlib import Path

import pytest

from storage.errors import CorruptFileError
from storage.formats import leader_epoch_checkpoint
from storage.formats.leader_epoch_checkpoint import EpochEntry, decode, encode

KAFKAS = b"0\n1\n0 16740\n"
PATH = "leader-epoch-checkpoint"


def test_a_file_of_kafkas_is_read_and_written_alike() -> None:
    assert decode(KAFKAS, PATH) == [EpochEntry(0, 16740)]
    assert encode([EpochEntry(0, 16740)]) == KAFKAS
    assert encode([EpochEntry(3, 0), EpochEntry(5, 70)]) == b"0\n2\n3 0\n5 70\n"


def test_a_log_without_epochs_has_an_empty_file() -> None:  # F-13.3
    assert decode(b"", PATH) == []


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"0\n1\n3 0 0\n", "2 fields expected, found 3"),
        (b"0\n1\n3\n", "2 fields expected, found 1"),
        (b"0\n1\n2147483648 0\n", "not a 32-bit"),
        (b"0\n1\n3 x\n", "not a 64-bit"),
    ],
)
def test_malformed_lines_are_corrupt(data: bytes, problem: str) -> None:
    with pytest.raises(CorruptFileError, match=f"leader-epoch-checkpoint, byte 4: .*{problem}"):
        decode(data, PATH)


@pytest.mark.parametrize("second", [EpochEntry(3, 10), EpochEntry(4, 5), EpochEntry(2, 10)])
def test_epochs_and_their_starts_have_to_rise(second: EpochEntry) -> None:
    leader_epoch_checkpoint.check([EpochEntry(3, 5), EpochEntry(4, 6)], PATH)
    with pytest.raises(CorruptFileError, match="does not follow epoch 3 at 5"):
        leader_epoch_checkpoint.check([EpochEntry(3, 5), second], PATH)


def test_a_file_is_written_and_read(tmp_path: Path) -> None:
    path = str(tmp_path / PATH)
    assert leader_epoch_checkpoint.read(path) == []
    leader_epoch_checkpoint.write(path, [EpochEntry(0, 16740)])
    assert Path(path).read_bytes() == KAFKAS
    assert leader_epoch_checkpoint.read(path) == [EpochEntry(0, 16740)]
