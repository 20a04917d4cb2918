"""Small logs for rounds, and what a round must leave of two of which one fails."""

import os
from pathlib import Path

import pytest

from cleaner_jobs import source_identity
from compactor.outcome.round_report import CleaningReport, Counts, LogStatus
from compactor.planning.round_plan import RoundPlan
from storage.codecs.compression import Codec
from storage.formats import checkpoint
from tests.support.local_round import LocalRound
from tests.support.made_log import (
    batches_of,
    files_of,
    keyed,
    make_partition,
    packed,
    plan_of,
    round_of,
)


def logs_in(root: Path, name: str = "orders-0") -> Path:
    """Segments 0 and 4, which become one, 8 and the active one at 12."""
    return make_partition(
        root / "logs",
        {
            0: [keyed(0, "ab"), keyed(2, "ac")],
            4: [keyed(4, "A.b"), packed(keyed(7, "d"), Codec.LZ4)],
            8: [keyed(8, "cdde")],
            12: [keyed(12, "a")],
        },
        name,
    )


GROUPS = [[0, 4], [8]]
COUNTS = Counts(  # by hand: a 0, 2; b 1; c 3; d 7, 9; and a key of none at 5
    records_read=12,
    records_kept=5,
    dropped_superseded=6,
    dropped_null_key=1,
    batches_read=5,
    batches_kept=2,
    batches_rebuilt=2,
)


def only(report: CleaningReport) -> tuple[LogStatus, str | None]:
    return report.logs[0].status, report.logs[0].reason


def two_logs(root: Path) -> tuple[Path, Path, RoundPlan]:
    good, bad = logs_in(root, "orders-0"), logs_in(root, "orders-1")
    return good, bad, plan_of_both(good, bad)


def plan_of_both(good: Path, bad: Path) -> RoundPlan:
    """Of two logs as they are now."""
    return round_of(*(plan_of(p, GROUPS, 12, log_id=i) for i, p in enumerate((good, bad))))


def check_one_failed(
    local: LocalRound, root: Path, status: LogStatus, reason: str, plan: RoundPlan
) -> None:
    good, bad = root / "logs" / "orders-0", root / "logs" / "orders-1"
    before = files_of(bad)
    report = local.run(plan)
    assert report.logs[0].status is LogStatus.CLEANED
    assert report.logs[1].status is status, report.logs[1].reason
    assert reason in (report.logs[1].reason or ""), report.logs[1].reason
    assert files_of(bad) == before
    assert report.logs[1].bytes_after == report.logs[1].bytes_before
    assert len(batches_of(good, 0)) == 1
    entries = checkpoint.read(str(root / "logs" / checkpoint.CLEANER_OFFSET))
    assert entries == {("orders", 0): 12}
    assert not any("compactor" in name for name in os.listdir(bad))


def drift_goes_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a disk changes a file, and no writer: the file system knows nothing of it."""
    monkeypatch.setattr(source_identity, "_check_same", lambda *_: None)


def flip(path: Path, at: int) -> None:
    """Turn a bit over, with the file's time and inode as they were."""
    stat = path.stat()
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_mtime_ns, stat.st_mtime_ns))
