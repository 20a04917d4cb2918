"""The recovery of one segment: indexes against the slow reference, ends and epochs by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from storage.errors import CorruptFileError
from storage.formats.leader_epoch_checkpoint import EpochEntry
from storage.formats.record import Record
from storage.formats.record_batch import BatchHeader
from storage.log.segment_recovery import RecoveredSegment, rebuilt_indexes, recover_segment
from tests.support.legacy_writer import encode_message
from tests.support.made_log import keyed
from tests.support.random_batches import random_batches
from tests.support.reference_batch import encode
from tests.support.reference_files import indexes

INTERVALS = (0, 100, 4096)
EPOCHS = {0: 3, 2: 3, 4: 5, 6: 4, 8: -1, 10: 6}  # of the batches with these base offsets
BATCHES = [
    encode(replace(keyed(offset, "ab"), leader_epoch=epoch)) for offset, epoch in EPOCHS.items()
]
SIZE = len(BATCHES[0])  # of each


def recovered(
    path: Path, data: bytes, interval_bytes: int = 0, base_offset: int = 0
) -> tuple[RecoveredSegment, list[tuple[int, int]]]:
    """And base offset and position of each batch that was told of."""
    path.write_bytes(data)
    told: list[tuple[int, int]] = []

    def take(header: BatchHeader, position: int) -> None:
        told.append((header.base_offset, position))

    return recover_segment(str(path), base_offset, interval_bytes, take), told


def assert_holds(found: RecoveredSegment, batches: Sequence[bytes], base_offset: int = 0) -> None:
    expected = indexes(batches, base_offset, 0)
    assert (found.indexes.offset_index, found.indexes.time_index) == expected
    assert found.log_bytes == sum(map(len, batches))


@pytest.mark.parametrize("interval_bytes", INTERVALS)
@pytest.mark.parametrize("seed", range(5))
def test_indexes_are_those_of_the_reference(tmp_path: Path, seed: int, interval_bytes: int) -> None:
    made = random_batches(Random(seed), 30)
    raws, base_offset = list(map(encode, made)), made[0].base_offset
    expected = indexes(raws, base_offset, interval_bytes)
    path = tmp_path / "0.log"
    found, _ = recovered(path, b"".join(raws), interval_bytes, base_offset)
    assert (found.indexes.offset_index, found.indexes.time_index) == expected
    assert found.end_offset == made[-1].last_offset + 1
    assert found.damage is None
    again = rebuilt_indexes(str(path), base_offset, path.stat().st_size, interval_bytes)
    assert (again.offset_index, again.time_index) == expected


def test_a_sound_segment_is_summed_up_batch_by_batch(tmp_path: Path) -> None:
    found, told = recovered(tmp_path / "0.log", b"".join(BATCHES))
    assert told == [(2 * number, number * SIZE) for number in range(6)]
    assert_holds(found, BATCHES)
    assert (found.end_offset, found.damage, found.is_out_of_order) == (12, None, False)


def test_only_epochs_that_are_higher_than_those_before_count(tmp_path: Path) -> None:
    found, _ = recovered(tmp_path / "0.log", b"".join(BATCHES))
    assert found.epochs == (EpochEntry(3, 0), EpochEntry(5, 4), EpochEntry(6, 10))


@pytest.mark.parametrize("cut", [1, 17, SIZE - 1])
def test_a_torn_end_is_left_out(tmp_path: Path, cut: int) -> None:
    found, told = recovered(tmp_path / "0.log", b"".join(BATCHES)[:-cut])
    assert_holds(found, BATCHES[:-1])
    assert (found.end_offset, len(told), found.is_out_of_order) == (10, 5, False)
    assert found.damage is not None and found.damage.position == 5 * SIZE
    assert found.epochs[-1] == EpochEntry(5, 4)


def test_a_checksum_that_does_not_fit_ends_it(tmp_path: Path) -> None:
    bad = BATCHES[2][:-1] + bytes([BATCHES[2][-1] ^ 1])
    found, told = recovered(tmp_path / "0.log", b"".join([*BATCHES[:2], bad, *BATCHES[3:]]))
    assert_holds(found, BATCHES[:2])
    assert (found.end_offset, len(told), found.is_out_of_order) == (4, 2, False)
    assert found.damage is not None and found.damage.position == 2 * SIZE


def test_a_batch_that_does_not_follow_the_one_before_ends_it(tmp_path: Path) -> None:
    found, _ = recovered(tmp_path / "0.log", b"".join([*BATCHES[:3], BATCHES[2]]))
    assert_holds(found, BATCHES[:3])
    assert (found.end_offset, found.is_out_of_order) == (6, True)
    assert found.damage is not None
    assert found.damage.problem == "base offset 4, expected 6 or more"


def test_a_batch_below_the_base_offset_does_not_follow_either(tmp_path: Path) -> None:
    found, told = recovered(tmp_path / "1.log", b"".join(BATCHES), base_offset=1)
    assert (found.log_bytes, found.end_offset, told) == (0, 1, [])
    assert found.is_out_of_order


def test_an_empty_segment_ends_where_it_begins(tmp_path: Path) -> None:
    found, _ = recovered(tmp_path / "7.log", b"", base_offset=7)
    assert (found.log_bytes, found.end_offset, found.damage, found.epochs) == (0, 7, None, ())
    assert_holds(found, [], 7)


def test_legacy_messages_count_but_have_no_epoch(tmp_path: Path) -> None:
    message = encode_message(1, Record(0, 100, b"a", b"1"))
    found, told = recovered(tmp_path / "0.log", message + BATCHES[1])
    assert told == [(2, len(message))]
    assert found.epochs == (EpochEntry(3, 2),)
    assert found.log_bytes == len(message) + SIZE


def test_what_is_made_of_a_batch_may_fail(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(BATCHES[0])

    def refuse(*_: object) -> None:
        raise CorruptFileError(str(path), 0, "not ours")

    with pytest.raises(CorruptFileError, match="not ours"):
        recover_segment(str(path), 0, 0, refuse)


def test_indexes_of_a_log_that_ends_within_a_batch_are_not_built(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"".join(BATCHES)[:-1])
    with pytest.raises(CorruptFileError, match=rf"byte {5 * SIZE}"):
        rebuilt_indexes(str(path), 0, path.stat().st_size, 0)
