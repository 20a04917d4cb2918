"""Indexes of a segment that are made anew: against the slow reference."""

from pathlib import Path
from random import Random

import pytest

from storage.errors import CorruptFileError
from storage.formats.segment_indexes import SegmentIndexes, rebuild_indexes
from storage.log.segment_reader import read_batch_headers
from tests.support.random_batches import random_batches
from tests.support.reference_batch import encode
from tests.support.reference_files import indexes

INTERVALS = (0, 100, 4096)


def rebuilt(path: Path, base_offset: int, interval_bytes: int) -> SegmentIndexes:
    headers = (header for _, header in read_batch_headers(str(path)))
    return rebuild_indexes(headers, base_offset, interval_bytes)


@pytest.mark.parametrize("interval_bytes", INTERVALS)
@pytest.mark.parametrize("seed", range(5))
def test_indexes_are_those_of_the_reference(tmp_path: Path, seed: int, interval_bytes: int) -> None:
    made = random_batches(Random(seed), 30)
    raws, base_offset = list(map(encode, made)), made[0].base_offset
    path = tmp_path / "0.log"
    path.write_bytes(b"".join(raws))
    found = rebuilt(path, base_offset, interval_bytes)
    assert (found.offset_index, found.time_index) == indexes(raws, base_offset, interval_bytes)


def test_indexes_of_a_log_that_ends_within_a_batch_are_not_built(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    batches = [encode(batch) for batch in random_batches(Random(1), 6)]
    path.write_bytes(b"".join(batches)[:-1])
    with pytest.raises(CorruptFileError, match=rf"byte {sum(map(len, batches[:-1]))}"):
        rebuilt(path, 0, 0)
