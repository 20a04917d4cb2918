"""A transaction that was open in what a run deleted comes back only while brokers know of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from compactor.originals.undo import UndoStatus
from compactor.settings.config import load_config
from storage.file_names import LOG, SNAPSHOT, TXN_INDEX, file_name
from storage.formats import checkpoint, producer_snapshot
from storage.formats.producer_snapshot import ProducerEntry
from tests.compactor.originals.test_undo import Kept
from tests.support.local_round import LocalRound
from tests.support.made_log import (
    ABORT_KEY,
    COMMIT_KEY,
    batch,
    index_entry,
    make_partition,
    marker,
    of_producer,
    record,
)
from tests.support.reference_batch import encode

RETAINED = load_config(settings={"cleanup.policy": "compact,delete", "retention.ms": "1000"})
LATER_MS = 2_000_000_000_000
PRODUCER = 7
END = 2  # of the log, all of which the run deletes


@pytest.fixture
def kept(local: LocalRound, tmp_path: Path) -> Kept:
    """A log of one segment, with the data of a transaction, after a run that has deleted it."""
    log_dir = tmp_path / "logs"
    data = of_producer(batch(record(0, b"a", b"1"), record(1, b"b", b"2")), PRODUCER)
    partition = make_partition(log_dir, {0: [encode(data)]})
    _write_snapshot(partition, END, open_since=0)
    for name in (checkpoint.REPLICATION, checkpoint.RECOVERY_POINT):
        checkpoint.write(str(log_dir / name), {("orders", 0): END})
    kept = Kept(local, log_dir, RETAINED)
    kept.run(now_ms=LATER_MS)
    assert (partition / file_name(END, LOG)).read_bytes() == b""
    return kept


def untouched(_: Path) -> None:
    pass


def ended_by_one_who_knew(partition: Path) -> None:
    _append(partition, ABORT_KEY)
    entry = index_entry(PRODUCER, 0, END, END)
    (partition / file_name(END, TXN_INDEX)).write_bytes(entry)
    _write_snapshot(partition, END + 1, open_since=None)


def committed(partition: Path) -> None:
    _append(partition, COMMIT_KEY)
    _write_snapshot(partition, END + 1, open_since=None)


def forgotten(partition: Path) -> None:
    """By a broker that was started and stopped."""
    _write_snapshot(partition, END, open_since=None)


def ended_by_one_who_had_forgotten(partition: Path) -> None:
    _append(partition, ABORT_KEY)
    _write_snapshot(partition, END + 1, open_since=None)


@pytest.mark.parametrize("since", [untouched, ended_by_one_who_knew, committed])
def test_one_that_is_known_comes_back(kept: Kept, since: Callable[[Path], None]) -> None:
    since(kept.log_dir / "orders-0")
    (report,) = kept.undo()
    assert report.status is UndoStatus.UNDONE, report
    assert (kept.log_dir / "orders-0" / file_name(0, LOG)).stat().st_size > 0


@pytest.mark.parametrize("since", [forgotten, ended_by_one_who_had_forgotten])
def test_one_that_is_forgotten_stays_away(kept: Kept, since: Callable[[Path], None]) -> None:
    since(kept.log_dir / "orders-0")
    before = kept.files()
    (report,) = kept.undo()
    assert report.status is UndoStatus.REFUSED, report
    assert "forgotten the transaction of producer 7 that began at offset 0" in (report.reason or "")
    assert kept.files() == before


def _append(partition: Path, key: bytes) -> None:
    with (partition / file_name(END, LOG)).open("ab") as log:
        log.write(marker(END, PRODUCER, key))


def _write_snapshot(partition: Path, offset: int, open_since: int | None) -> None:
    entry = ProducerEntry(
        producer_id=PRODUCER,
        producer_epoch=0,
        last_sequence=1,
        last_offset=1,
        offset_delta=1,
        timestamp=LATER_MS,
        coordinator_epoch=None,
        current_txn_first_offset=open_since,
    )
    producer_snapshot.write(str(partition / file_name(offset, SNAPSHOT)), [entry])
