"""Producer state on loading a log, spec C-23.4, C-23.5, F-14.3, F-14.4.

The log and its snapshots were written by Kafka 4.3.1 (`oracle build`): segments 0, 6 and 12;
producers 1 (commits twice, the second time with an epoch one higher), 2 (aborts), 3 (leaves a
transaction open) and 7 (idempotent only).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.formats import producer_snapshot
from storage.formats.producer_snapshot import ProducerEntry
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from storage.log.log_dir import list_partition
from storage.log.producer_state import ExpiryClock, ProducerState, load_producer_state
from storage.log.producer_state_entry import CompletedTxn
from tests.support.reference_batch import decode, encode

LOGS = {
    0: "0000000000000000000000430000000002e39f63f300000000000100000000000000640000000000"
    "00006e00000000000000070001000000000000000210000000026102310001001402026202310000"
    "000000000000020000003a0000000002333fa39f0010000000000000000000000078000000000000"
    "00780000000000000001000000000000000000011000000002610232000000000000000003000000"
    "430000000002b30612280010000000010000000000000082000000000000008c0000000000000002"
    "00000000000000000002100000000263023200100014020264023200000000000000000500000042"
    "00000000023db9319500300000000000000000000003e800000000000003e8000000000000000100"
    "00ffffffff000000012000000008000000010c00000000000000",
    6: "00000000000000060000004200000000022a550c7000300000000000000000000003e80000000000"
    "0003e800000000000000020000ffffffff000000012000000008000000000c000000000000000000"
    "0000000000070000004c0000000302f0b1f536001000000002000000000000009600000000000000"
    "98000000000000000300057ffffffe00000003100000000265023200100002020266023200100004"
    "040267023200000000000000000a0000003a0000000002bb87e60e00100000000000000000000000"
    "a000000000000000a000000000000000010000000000010000000110000000026102330000000000"
    "0000000b0000004200000000021017b59a00300000000000000000000003e800000000000003e800"
    "000000000000010001ffffffff000000012000000008000000010c00000000000000",
    12: "000000000000000c0000003a0000000002396537e300000000000000000000000000aa0000000000"
    "0000aa000000000000000700010000000200000001100000000261023900",
}
P7_AT_6 = ProducerEntry(7, 1, 1, 1, 1, 110, None, None)
AT_6 = [
    ProducerEntry(1, 0, 0, 2, 0, 1000, 0, None),
    ProducerEntry(2, 0, 1, 4, 1, 140, None, 3),
    P7_AT_6,
]
P1_AT_12 = ProducerEntry(1, 1, None, None, 0, 1000, 0, None)
P2_AT_12 = ProducerEntry(2, 0, 1, 4, 1, 1000, 0, None)
P3_AT_12 = ProducerEntry(3, 5, 0, 9, 2, 152, None, 7)  # its sequences went past 2^31 - 1
AT_12 = [P1_AT_12, P2_AT_12, P3_AT_12, P7_AT_6]
AT_13 = [P1_AT_12, P2_AT_12, P3_AT_12, ProducerEntry(7, 1, 2, 12, 0, 170, None, None)]
DAY_MS = 86_400_000

Load = Callable[..., ProducerState]


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    for base_offset, data in LOGS.items():
        (tmp_path / f"{base_offset:020d}.log").write_bytes(bytes.fromhex(data))
        (tmp_path / f"{base_offset:020d}.index").write_bytes(b"")
    for offset, entries in ((6, AT_6), (12, AT_12), (13, AT_13)):
        (tmp_path / f"{offset:020d}.snapshot").write_bytes(producer_snapshot.encode(entries))
    return tmp_path


@pytest.fixture
def load(partition: Path) -> Load:
    def load(
        snapshots: Sequence[int] = (6, 12, 13),
        log_start: int = 0,
        log_end: int = 13,
        now_ms: int = 1000,
        clean_shutdown: bool = True,
    ) -> ProducerState:
        listing = list_partition(str(partition), "t", 0)
        listing = listing._replace(snapshot_offsets=tuple(snapshots))
        clock = ExpiryClock(now_ms, DAY_MS)
        return load_producer_state(listing, log_start, log_end, clock, clean_shutdown)

    return load


def entries(state: ProducerState) -> list[ProducerEntry]:
    assert all(producer_id == entry.producer_id for producer_id, entry in state.entries.items())
    return sorted(state.entries.values())


@pytest.mark.parametrize("snapshots", [(6, 12, 13), (6, 12), (6,), ()])
def test_a_replay_from_anywhere_gives_kafkas_last_snapshot(
    load: Load, snapshots: tuple[int, ...]
) -> None:  # C-23.5
    state = load(snapshots, clean_shutdown=False)
    assert entries(state) == AT_13
    assert state.first_unstable_offset == 7


@pytest.mark.parametrize(("log_end", "expected"), [(6, AT_6), (12, AT_12), (13, AT_13)])
def test_a_replay_ends_at_the_log_end(
    load: Load, log_end: int, expected: list[ProducerEntry]
) -> None:
    assert entries(load((), log_end=log_end, clean_shutdown=False)) == expected


def test_a_snapshot_past_the_log_end_is_not_used(load: Load) -> None:  # C-23.4
    assert entries(load((6, 12, 13), log_end=12)) == AT_12
    assert entries(load((13,), log_end=12)) == AT_12  # replayed from the start


def test_a_snapshot_not_past_the_log_start_is_not_used(load: Load) -> None:  # C-23.4
    state = load((6,), log_start=6, log_end=12)
    # replayed from 6: of producer 2 only the marker is met, producer 7 is not met at all
    assert entries(state) == [P1_AT_12, ProducerEntry(2, 0, None, None, 0, 1000, 0, None), P3_AT_12]
    assert entries(load((6,), log_start=5, log_end=12)) == AT_12


def test_after_a_clean_shutdown_without_snapshots_there_are_no_producers(load: Load) -> None:
    assert load((), clean_shutdown=True) == ProducerState({}, None)  # F-14.3
    # 3 and 5 are at no segment, and below the last one: deleted on loading, F-14.4
    assert load((3, 5), clean_shutdown=True) == ProducerState({}, None)


def test_the_newest_snapshot_at_no_segment_stays_unless_it_is_below_the_last(
    load: Load, partition: Path
) -> None:  # F-14.4
    only_at_13 = [ProducerEntry(99, 0, 0, 8, 0, 1000, None, None)]
    (partition / f"{13:020d}.snapshot").write_bytes(producer_snapshot.encode(only_at_13))
    (partition / f"{9:020d}.snapshot").write_bytes(producer_snapshot.encode(only_at_13))
    assert entries(load((6, 9, 13))) == only_at_13
    assert entries(load((6, 9))) == AT_13  # from 6


def test_a_snapshot_that_cannot_be_read_gives_way_to_the_next_older(
    load: Load, partition: Path
) -> None:  # F-14.3
    (partition / f"{13:020d}.snapshot").write_bytes(b"\x00\x01damaged!")
    (partition / f"{12:020d}.snapshot").unlink()
    state = load((6, 12, 13))
    assert entries(state) == AT_13
    assert [txn.last_offset for txn in state.completed] == [6, 11]  # from 6 on


def test_producers_of_a_snapshot_expire_after_a_day(load: Load) -> None:  # C-23.4, run K
    assert entries(load((12,), log_end=12, now_ms=110 + DAY_MS - 1)) == AT_12
    assert entries(load((12,), log_end=12, now_ms=110 + DAY_MS)) == AT_12[:3]
    # an open transaction keeps its producer
    assert entries(load((12,), log_end=12, now_ms=10 * DAY_MS)) == [P3_AT_12]


def test_producers_of_a_replay_do_not_expire(load: Load) -> None:  # C-23.4
    assert entries(load((), now_ms=10 * DAY_MS, clean_shutdown=False)) == AT_13


def test_the_index_is_used_to_find_where_to_start(load: Load, partition: Path) -> None:
    log = partition / f"{6:020d}.log"
    data = log.read_bytes()
    log.write_bytes(bytes(78) + data[78:])  # a walk from the start would stumble
    index = partition / f"{6:020d}.index"
    index.write_bytes((3).to_bytes(4, "big") + (78).to_bytes(4, "big"))  # the batch of 7 to 9
    state = load((), log_start=10, log_end=12, clean_shutdown=False)
    assert entries(state) == [P1_AT_12]
    index.write_bytes((3).to_bytes(4, "big") + len(data).to_bytes(4, "big"))
    with pytest.raises(CorruptFileError, match=r"06\.index, byte 0"):
        load((), log_start=10, log_end=12, clean_shutdown=False)


def test_completed_transactions_count_while_their_marker_may_be_lost(load: Load) -> None:  # C-4.5
    state = load((), clean_shutdown=False)
    assert state.completed == (
        CompletedTxn(1, 2, 5, False),
        CompletedTxn(2, 3, 6, True),
        CompletedTxn(1, 10, 11, False),
    )
    expected = {13: 7, 12: 7, 11: 7, 7: 7, 6: 3, 5: 2}
    assert {mark: state.first_unstable_below(mark) for mark in expected} == expected
    raised = load((), log_start=4, clean_shutdown=False)
    assert raised.first_unstable_below(6) == 4
    assert ProducerState({}, None).first_unstable_below(5) is None
    raised = load((12,), log_start=8)
    assert raised.first_unstable_offset == 8


def options(producer_epoch: int = 0, control: bool = False, txn: bool = False) -> BatchOptions:
    return BatchOptions(
        producer_id=40,
        producer_epoch=producer_epoch,
        base_sequence=-1 if control else 5,
        is_control=control,
        is_transactional=txn,
    )


def load_batches(directory: Path, batches: list[bytes]) -> ProducerState:
    (directory / f"{0:020d}.log").write_bytes(b"".join(batches))
    listing = list_partition(str(directory), "t", 0)
    return load_producer_state(listing, 0, 1000, ExpiryClock(0), clean_shutdown=False)


def empty(data: bytes) -> bytes:
    return encode(replace(decode(data), base_timestamp=-1, records=()))


def test_an_empty_control_batch_changes_nothing_but_makes_its_producer_known(
    tmp_path: Path,
) -> None:  # C-23.5
    marker = Record(3, 500, bytes(4), bytes(6))
    emptied = empty(encode_batch([marker], options=options(9, control=True, txn=True)))
    state = load_batches(tmp_path, [emptied])
    assert entries(state) == [ProducerEntry(40, -1, None, None, 0, -1, None, None)]
    data = encode_batch([Record(1, 300, b"k", b"v")], options=options(2, txn=True))
    state = load_batches(tmp_path, [data, emptied])
    assert entries(state) == [ProducerEntry(40, 2, 5, 1, 0, 300, None, 1)]


def test_an_empty_data_batch_counts_like_a_full_one(tmp_path: Path) -> None:  # C-23.5
    data = encode_batch(
        [Record(1, 300, b"k", b"v"), Record(4, 200, b"k", b"v")], options=options(2)
    )
    state = load_batches(tmp_path, [empty(data)])
    assert entries(state) == [ProducerEntry(40, 2, 8, 4, 3, 300, None, None)]


def test_a_batch_outside_the_open_transaction_of_its_producer_is_corrupt(tmp_path: Path) -> None:
    first = encode_batch([Record(1, 300, b"k", b"v")], options=options(txn=True))
    second = encode_batch([Record(2, 300, b"k", b"v")], options=options())
    with pytest.raises(CorruptFileError, match=r"00\.log, byte 70: producer 40 has .*open"):
        load_batches(tmp_path, [first, second])


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (bytes(3), bytes(6), "key has 3 of 4 bytes"),
        (bytes(4), bytes(5), "value has 5 of 6 bytes"),
        (None, None, "key has 0 of 4 bytes"),
        (b"\x00\x00\x00\x02", bytes(6), "control record of type LEADER_CHANGE is no marker"),
    ],
)
def test_a_marker_that_is_none_is_refused(
    tmp_path: Path, key: bytes | None, value: bytes | None, problem: str
) -> None:
    marker = Record(1, 300, key, value)
    batch = encode_batch([marker], options=options(control=True, txn=True))
    with pytest.raises((CorruptFileError, UnsupportedFormatError), match=f"byte 0: .*{problem}"):
        load_batches(tmp_path, [batch])
