"""A split (C-16) goes together with transactions, retention and a missing index in one run.

What is expected was counted by hand: which offsets stay, and in which segments.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from compactor.cleaning.overflow import Splitting, split_overflowing
from compactor.outcome.round_report import LogReport, LogStatus
from compactor.planning.round_plan import RoundPlan
from storage.file_names import INDEX, LOG, SNAPSHOT, TXN_INDEX, file_name
from storage.formats import checkpoint, txn_index
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from tests.compactor.plan_logs import plan_log_dirs, with_settings
from tests.support.local_round import LocalRound
from tests.support.made_log import (
    ABORT_KEY,
    COMMIT_KEY,
    NOW_MS,
    batches_of,
    index_entry,
    keyed,
    make_partition,
    marker,
    of_producer,
)
from tests.support.reference_batch import ReferenceBatch, decode, encode

FAR = 2**31 + 2  # base offset of the segment that the split makes
ACTIVE = FAR + 20


def overflowing(root: Path, batches: list[bytes | ReferenceBatch]) -> Path:
    """One segment of all these batches, and an active one."""
    near = [encode(b) if isinstance(b, ReferenceBatch) else b for b in batches]
    partition = make_partition(root, {0: [keyed(0, "a")], ACTIVE: [keyed(ACTIVE, "z")]})
    (partition / file_name(0, LOG)).write_bytes(b"".join(near))
    for path in partition.glob(f"*{SNAPSHOT}"):
        path.unlink()
    return partition


def run(local: LocalRound, partition: Path, settings: dict[str, str]) -> LogReport:
    config = with_settings(
        {"delete.retention.ms": "1000", "min.cleanable.dirty.ratio": "0"} | settings
    )

    def planned() -> RoundPlan:
        return plan_log_dirs([str(partition.parent)], config, NOW_MS)

    (log,) = local.run(split_overflowing(planned(), planned, Splitting())).logs
    assert log.status is LogStatus.CLEANED, log.reason
    assert "split first" in log.notes[0]
    return log


def offsets_of(partition: Path) -> dict[int, list[int]]:
    """The offsets of all records but the active segment's, by base offset of their segment."""
    bases = sorted(int(path.name.removesuffix(LOG)) for path in partition.glob(f"*{LOG}"))
    assert bases[-1] == ACTIVE
    return {
        base: [r.offset for raw in batches_of(partition, base) for r in decode(raw).records]
        for base in bases[:-1]
    }


TRANSACTIONS: list[bytes | ReferenceBatch] = [
    keyed(0, "ab"),
    of_producer(keyed(2, "a"), 1),  # aborted at 3: 0 is a's value until the far one
    marker(3, 1, ABORT_KEY),
    of_producer(keyed(4, "cd"), 2),  # aborted in the far segment
    of_producer(keyed(6, "b"), 3),  # committed in the far segment
    of_producer(keyed(FAR, "d"), 2),
    marker(FAR + 1, 2, ABORT_KEY),
    marker(FAR + 2, 3, COMMIT_KEY),
    keyed(FAR + 3, "e"),
]
NEAR_ENTRY, FAR_ENTRY = (1, 2, 3, 4), (2, 4, FAR + 1, 6)  # producer 3 is open when 2 aborts


@pytest.mark.parametrize("has_index", [True, False])
def test_transactions_are_split_and_cleaned_in_one_run(
    local: LocalRound, tmp_path: Path, has_index: bool
) -> None:
    """C-16, C-8: aborted records go on both sides, and each marker stays with its entry.

    Without .index the entries of .txnindex are found by recovery (F-16.1).
    """
    partition = overflowing(tmp_path / "logs", TRANSACTIONS)
    if has_index:
        (partition / file_name(0, TXN_INDEX)).write_bytes(
            index_entry(*NEAR_ENTRY) + index_entry(*FAR_ENTRY)
        )
    else:
        (partition / file_name(0, INDEX)).unlink()
    run(local, partition, {})
    assert offsets_of(partition) == {0: [0, 3, 6], FAR: [FAR + 1, FAR + 2, FAR + 3]}
    for base, entry in ((0, NEAR_ENTRY), (FAR, FAR_ENTRY)):
        assert txn_index.read(str(partition / file_name(base, TXN_INDEX))) == [entry]


def test_retention_takes_the_first_segment_of_a_split(local: LocalRound, tmp_path: Path) -> None:
    """C-18: before the split the segment was as young as its far records."""
    partition = overflowing(
        tmp_path / "logs",
        [keyed(0, "ab"), keyed(2, "a"), _at(5000, keyed(FAR, "cdefghijklmnopqrstuv"))],
    )
    (partition / LEADER_EPOCH_CHECKPOINT).write_text("0\n1\n0 0\n")
    report = run(
        local, partition, {"cleanup.policy": "compact,delete", "retention.ms": str(NOW_MS - 5000)}
    )
    assert offsets_of(partition) == {FAR: [*range(FAR, ACTIVE)]}
    assert report.retention.deleted.segments == 1
    starts = checkpoint.read(str(partition.parent / checkpoint.LOG_START))
    assert starts == {("orders", 0): FAR}


def _at(timestamp_ms: int, made: ReferenceBatch) -> ReferenceBatch:
    records = tuple(replace(record, timestamp=timestamp_ms) for record in made.records)
    return replace(made, base_timestamp=timestamp_ms, max_timestamp=timestamp_ms, records=records)
