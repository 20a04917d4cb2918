"""Index files of a cleaned segment that Kafka would not have made are found."""

from pathlib import Path
from struct import Struct

import pytest

from storage.file_names import INDEX, TIME_INDEX, TXN_INDEX, file_name
from tests.compactor.verification.test_verify_against import (
    ABORTED_TXN,
    Pair,
    after,
    pair,
)
from tests.support.made_log import index_entry, write_segment
from tests.support.reference_batch import split

__all__ = ["pair"]  # a fixture
OFFSET_ENTRY, TIME_ENTRY = Struct(">ii"), Struct(">qi")


@pytest.fixture
def indexed(pair: Pair) -> Path:
    """The partition after; the cleaned segment has an entry for each batch but the first."""
    partition = pair.new / "orders-0"
    write_segment(partition, 0, list(after().values()), interval_bytes=0)
    assert pair.hold().findings == []
    assert len((partition / file_name(0, INDEX)).read_bytes()) == 8 * (len(after()) - 1)
    return partition


def entries_of(path: Path, entry: Struct) -> list[list[int]]:
    return [list(fields) for fields in entry.iter_unpack(path.read_bytes())]


def put(path: Path, entry: Struct, entries: list[list[int]]) -> None:
    path.write_bytes(b"".join(entry.pack(*fields) for fields in entries))


@pytest.mark.parametrize(("field", "by"), [(0, 1), (0, -1), (1, 1), (1, -1)])
@pytest.mark.parametrize("row", [0, 3, -1])
def test_an_offset_entry_is_of_one_batch(
    pair: Pair, indexed: Path, row: int, field: int, by: int
) -> None:
    path = indexed / file_name(0, INDEX)
    entries = entries_of(path, OFFSET_ENTRY)
    entries[row][field] += by
    put(path, OFFSET_ENTRY, entries)
    [finding] = pair.hold().findings
    offset, position = entries[row]
    assert (finding.path, finding.position) == (str(path), 8 * (row % len(entries)))
    assert finding.problem == (
        f"entry (offset {offset}, position {position}) is not the last offset and the position of "
        "a batch"
    )


@pytest.mark.parametrize(("field", "by"), [(0, 1), (0, -1), (1, 1), (1, -1)])
@pytest.mark.parametrize("row", [0, -1])
def test_a_time_entry_is_of_the_first_batch_with_the_largest_time(
    pair: Pair, indexed: Path, row: int, field: int, by: int
) -> None:
    path = indexed / file_name(0, TIME_INDEX)
    entries = entries_of(path, TIME_ENTRY)
    entries[row][field] += by
    put(path, TIME_ENTRY, entries)
    [finding] = pair.hold().findings
    assert (finding.path, finding.position) == (str(path), 12 * (row % len(entries)))
    assert "is not that of the first batch with the largest timestamp so far" in finding.problem


def test_fewer_entries_are_as_good(pair: Pair, indexed: Path) -> None:
    """How many there are, index.interval.bytes and segment.index.bytes say."""
    path = indexed / file_name(0, INDEX)
    put(path, OFFSET_ENTRY, entries_of(path, OFFSET_ENTRY)[::3])
    path = indexed / file_name(0, TIME_INDEX)
    put(path, TIME_ENTRY, entries_of(path, TIME_ENTRY)[-1:])
    assert pair.hold().findings == []


def test_indexes_of_a_segment_that_was_left_are_not_looked_at(pair: Pair) -> None:
    """A broker of another version made them otherwise (C-13.4)."""
    for side in pair:
        partition = side / "orders-0"
        path = partition / file_name(20, INDEX)
        path.write_bytes(OFFSET_ENTRY.pack(0, 0))
    assert pair.hold().findings == []


TOLD = "aborted transaction of producer 8 from offset 5 to 7, last stable offset 8: "


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", TOLD + "is missing, and some of its data is left"),
        (index_entry(8, 5, 7, 7), "stable offset 7: no such entry was there before"),
        (index_entry(8, 4, 7, 8), "from offset 4 to 7, last stable offset 8: no such entry"),
        (ABORTED_TXN * 2, TOLD + "no such entry was there before"),
        (index_entry(8, 5, 20, 21), "to 20, last stable offset 21: ends in another segment"),
    ],
)
def test_a_transaction_entry_is_one_of_before(pair: Pair, data: bytes, problem: str) -> None:
    path = pair.new / "orders-0" / file_name(0, TXN_INDEX)
    path.write_bytes(data)
    if not data:
        path.unlink()
    told = [f.problem for f in pair.hold().findings if f.path == str(path)]
    assert any(problem in text for text in told), told


def test_an_entry_goes_once_nothing_is_left_of_its_transaction(pair: Pair) -> None:
    """C-8.8: the cleaning that takes the data keeps the entry, and the next one does not."""
    partition = pair.new / "orders-0"
    batches = after()
    del batches["aborted"]
    write_segment(partition, 0, list(batches.values()))
    path = partition / file_name(0, TXN_INDEX)
    path.unlink()
    assert not [finding for finding in pair.hold().findings if finding.path == str(path)]


def test_a_transaction_without_data_may_have_no_entry(pair: Pair) -> None:
    """C-8.8: its data had gone before; its entry goes in this cleaning."""
    path = pair.old / "orders-0" / file_name(0, TXN_INDEX)
    path.write_bytes(index_entry(3, 1, 1, 2) + ABORTED_TXN)
    assert pair.hold().findings == []


def test_the_batches_are_those_of_the_file(indexed: Path) -> None:
    """So that the tests above are about entries that lead somewhere."""
    raw = (indexed / file_name(0, ".log")).read_bytes()
    sizes = [len(batch) for batch in split(raw)]
    positions = [sum(sizes[:i]) for i in range(1, len(sizes))]
    assert [p for _, p in entries_of(indexed / file_name(0, INDEX), OFFSET_ENTRY)] == positions
