"""Producers through the recovery of a log, against the snapshots that Kafka wrote of the same log.

The log is that of test_producer_state, written by Kafka 4.3.1: segments 0, 6 and 12, end 13. In
segment 6 producer 2 aborts at offset 6 what it began at 3; producer 3 begins at 7 and stays open.
"""

from pathlib import Path

import pytest

from storage.formats import producer_snapshot
from storage.formats.producer_snapshot import ProducerEntry
from storage.formats.txn_index import AbortedTxn
from storage.log.producer_recovery import LogToRead, ProducerRecovery, SnapshotBook
from storage.log.producer_state import ExpiryClock
from storage.log.segment_reader import read_batch_headers
from tests.storage.log.test_producer_state import AT_6, AT_12, AT_13, DAY_MS, LOGS

BASES, END = (0, 6, 12), 13
SIZES = tuple(len(LOGS[base]) // 2 for base in BASES)
NOT_EXPIRED = ExpiryClock(1000, DAY_MS)
Made = dict[int, set[ProducerEntry]]


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    for base_offset, data in LOGS.items():
        (tmp_path / f"{base_offset:020d}.log").write_bytes(bytes.fromhex(data))
    return tmp_path


def write_snapshots(partition: Path, **snapshots: list[ProducerEntry]) -> set[int]:
    """Each named for its offset, behind the word at."""
    for name, entries in snapshots.items():
        path = partition / f"{int(name.removeprefix('at_')):020d}.snapshot"
        path.write_bytes(producer_snapshot.encode(entries))
    return {int(path.stem) for path in partition.glob("*.snapshot")}


class Recovery:
    """A recovery, and what it comes to."""

    def __init__(
        self, partition: Path, in_files: set[int], clock: ExpiryClock = NOT_EXPIRED
    ) -> None:
        self.partition = partition
        self.book = SnapshotBook(str(partition), in_files)
        self.recovery = ProducerRecovery(self.book, clock)

    def segment(self, base: int, log_start: int = 0) -> list[AbortedTxn]:
        producers = self.recovery.begin(self._log(), base, log_start)
        for position, header in read_batch_headers(str(self.partition / f"{base:020d}.log")):
            producers.add(header, position)
        producers.finish()
        return producers.aborted

    def end(self, log_start: int = 0) -> None:
        self.recovery.end(self._log(), log_start, END)

    @property
    def made(self) -> Made:
        return {offset: set(entries) for offset, entries in self.book.made.items()}

    def _log(self) -> LogToRead:
        return LogToRead(str(self.partition), BASES, SIZES)


def test_without_snapshots_all_are_made_as_kafka_made_them(partition: Path) -> None:
    recovery = Recovery(partition, set())
    aborted = [recovery.segment(base) for base in BASES]
    recovery.end()
    assert recovery.made == {6: {*AT_6}, 12: {*AT_12}, 13: {*AT_13}}
    assert aborted == [[], [AbortedTxn(2, 3, 6, 7)], []]


def test_the_newest_snapshot_below_a_segment_is_begun_with(partition: Path) -> None:
    """What it says counts, though the batches below would say otherwise."""
    other = [ProducerEntry(9, 0, 0, 1, 0, 999, None, None)]
    recovery = Recovery(partition, write_snapshots(partition, at_6=AT_6, at_12=other))
    recovery.segment(12)
    recovery.end()
    assert recovery.made == {13: {*other, ProducerEntry(7, 1, 2, 12, 0, 170, None, None)}}
    assert recovery.book.offsets == [6, 12, 13]


def test_a_damaged_snapshot_goes_and_the_one_before_it_is_taken(partition: Path) -> None:
    in_files = write_snapshots(partition, at_6=AT_6, at_12=AT_12)
    path = partition / f"{12:020d}.snapshot"
    path.write_bytes(path.read_bytes()[:-1])
    recovery = Recovery(partition, in_files)
    recovery.segment(12)
    assert recovery.made == {12: {*AT_12}, 13: {*AT_13}}
    assert recovery.book.in_files == {6}


@pytest.mark.parametrize(("log_start", "kept"), [(5, {6}), (6, set()), (7, set())])
def test_snapshots_up_to_the_log_start_and_past_the_segment_go(
    partition: Path, log_start: int, kept: set[int]
) -> None:
    recovery = Recovery(partition, write_snapshots(partition, at_6=AT_6, at_13=AT_13))
    recovery.segment(12, log_start)
    assert recovery.book.in_files == kept
    assert set(recovery.made) == {12, 13}


def test_at_the_end_snapshots_at_no_segment_go(partition: Path) -> None:
    """But for the newest of them, where it is not below the last segment: here that at 13."""
    snapshots = write_snapshots(partition, at_3=[], at_6=AT_6, at_12=AT_12, at_13=AT_13)
    recovery = Recovery(partition, snapshots)
    recovery.end()
    assert (recovery.book.offsets, recovery.made) == ([6, 12, 13], {})


@pytest.mark.parametrize(("now_ms", "is_known"), [(110 + DAY_MS - 1, True), (110 + DAY_MS, False)])
def test_a_producer_that_has_expired_is_not_taken_from_a_snapshot(
    partition: Path, now_ms: int, is_known: bool
) -> None:
    """Producer 7 wrote last at 110 ms; producer 2 at 140, and its transaction is open."""
    in_files = write_snapshots(partition, at_6=AT_6)
    recovery = Recovery(partition, in_files, ExpiryClock(now_ms, DAY_MS))
    recovery.segment(6)
    known = {entry.producer_id for entry in recovery.made[12]}
    assert known == {1, 2, 3} | ({7} if is_known else set())


def test_a_log_is_read_no_further_than_it_is_sound(partition: Path) -> None:
    """Segment 6 is cut off before its last batch of 78 bytes, which commits what began at 10."""
    recovery = Recovery(partition, write_snapshots(partition, at_6=AT_6))
    log = LogToRead(str(partition), BASES[:2], (SIZES[0], SIZES[1] - 78))
    recovery.recovery.end(log, 0, 11)
    is_open = ProducerEntry(1, 0, 1, 10, 0, 160, 0, 10)
    assert recovery.made == {11: {is_open, *AT_12[1:]}}


def test_batches_below_a_snapshot_inside_a_segment_are_passed_by(partition: Path) -> None:
    """This one says, at 7, that what offset 6 aborts is still open."""
    recovery = Recovery(partition, write_snapshots(partition, at_7=AT_6))
    recovery.segment(12)
    assert AT_6[1].current_txn_first_offset == 3
    assert AT_6[1] in recovery.made[12]


def test_what_is_made_on_the_way_are_those_of_the_last_two_segments(partition: Path) -> None:
    recovery = Recovery(partition, set())
    recovery.end()
    assert recovery.made == {6: {*AT_6}, 12: {*AT_12}, 13: {*AT_13}}
