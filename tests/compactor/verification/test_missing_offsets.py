"""Offsets that are missing behind a segment which no cleaning has gone over."""

import shutil
from pathlib import Path

import pytest

from compactor.verification.verify import verify
from compactor.verification.verify_batches import Finding
from storage.codecs.compression import Codec
from storage.file_names import LOG, file_name
from storage.formats import checkpoint
from tests.golden import corpora
from tests.support.local_round import NoProgress
from tests.support.made_log import batch, keyed, make_partition, packed, record
from tests.support.reference_batch import ReferenceBatch

ORDERS = ("orders", 0)


def missed(log_dir: Path) -> list[Finding]:
    found = verify(str(log_dir), None, NoProgress()).findings
    return [finding for finding in found if "missing behind" in finding.problem]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_segment_that_was_deleted_between_others_is_missed(tmp_path: Path, codec: Codec) -> None:
    log_dir = tmp_path / "logs"
    orders = make_partition(
        log_dir,
        {
            0: [packed(keyed(0, "ab"), codec), packed(keyed(2, "cA"), codec)],
            4: [keyed(4, "de")],
            6: [keyed(6, "fg")],
            8: [keyed(8, "h")],
        },
    )
    assert missed(log_dir) == []
    for path in orders.glob(f"{file_name(4, '')}*"):
        path.unlink()
    [finding] = missed(log_dir)
    assert finding.path == str(orders / file_name(0, LOG))
    assert finding.position == (orders / file_name(0, LOG)).stat().st_size
    assert finding.problem == (
        "offsets 4 to 5 are missing behind this segment, and no cleaning has removed them: it "
        "would not have left both offset 0 and offset 3, which have the same key"
    )


@pytest.mark.parametrize(
    ("first", "is_missed"),
    [
        ([keyed(0, "aba")], True),
        ([keyed(0, "abc")], False),  # a cleaning may have taken the others
        ([keyed(0, "ab"), keyed(3, "a")], False),  # it has, or another's: 2 is missing, too
        ([batch(record(0, b"a"), record(2, b"a"))], False),  # likewise, of a batch
        ([keyed(1, "aab")], False),  # likewise, before the first batch
        ([keyed(0, "a.b")], False),  # brokers take nothing without a key
    ],
)
def test_what_a_cleaning_may_leave_is_no_finding(
    tmp_path: Path, first: list[ReferenceBatch], is_missed: bool
) -> None:
    """Also without a checkpoint: it was lost, or the cleaning was cut short."""
    make_partition(tmp_path / "logs", {0: first, 6: [keyed(6, "ab")], 8: [keyed(8, "z")]})
    assert bool(missed(tmp_path / "logs")) is is_missed


@pytest.mark.parametrize(
    ("entry", "is_missed"), [(0, True), (1, True), (2, False), (9, False), (10, True)]
)
def test_what_counts_as_clean_is_not_judged(tmp_path: Path, entry: int, is_missed: bool) -> None:
    """Nor is what the log start is above; an entry past the end of the log counts for none."""
    log_dir = tmp_path / "logs"
    make_partition(log_dir, {0: [keyed(0, "xaya")], 6: [keyed(6, "ab")], 8: [keyed(8, "z")]})
    for name in (checkpoint.CLEANER_OFFSET, checkpoint.LOG_START):
        path = str(log_dir / name)
        if name == checkpoint.CLEANER_OFFSET or entry < 10:
            checkpoint.write(path, {ORDERS: entry})
            assert bool(missed(log_dir)) is is_missed, name
        checkpoint.write(path, {})


def test_records_of_transactions_prove_nothing(tmp_path: Path) -> None:
    """An aborted one stays out of the map: what was before it stays."""
    of_one = {"attributes": 0x10, "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    transactional = batch(record(1, b"a"), **of_one)
    log_dir = tmp_path / "logs"
    make_partition(log_dir, {0: [keyed(0, "a"), transactional], 6: [keyed(6, "b")]})
    assert missed(log_dir) == []


def test_what_stands_further_before_proves_it_too(tmp_path: Path) -> None:
    segments = {0: [keyed(0, "ab")], 2: [keyed(2, "ca")], 4: [keyed(4, "de")], 9: [keyed(9, "z")]}
    make_partition(tmp_path / "logs", segments)
    [finding] = missed(tmp_path / "logs")
    assert "offsets 6 to 8 are missing" in finding.problem
    assert "both offset 0 and offset 3, " in finding.problem


def test_a_gap_that_is_small_against_the_segment_before_is_a_replicas(tmp_path: Path) -> None:
    make_partition(tmp_path / "logs", {0: [keyed(0, "abababa")], 10: [keyed(10, "z")]})
    assert missed(tmp_path / "logs") == []
    make_partition(tmp_path / "logs", {0: [keyed(0, "ababab")], 10: [keyed(10, "z")]}, "orders-1")
    assert len(missed(tmp_path / "logs")) == 1


def test_logs_of_kafkas_and_what_its_cleaner_made_of_them_miss_nothing(tmp_path: Path) -> None:
    """Whatever their checkpoints say: these may be lost."""
    fleet = corpora.extracted()
    for side in (fleet.before, fleet.after):
        log_dir = tmp_path / side.name
        shutil.copytree(side, log_dir)
        assert missed(log_dir) == []
        (log_dir / checkpoint.CLEANER_OFFSET).unlink()
        assert missed(log_dir) == []
