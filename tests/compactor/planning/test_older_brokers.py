"""Log directories of older brokers load and are cleaned (F-18, C-24)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from compactor.outcome.round_report import LogStatus
from storage.file_names import INDEX, LOG, TIME_INDEX, file_name
from storage.formats import checkpoint
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.meta_properties import META_PROPERTIES
from storage.formats.partition_metadata import PARTITION_METADATA
from tests.compactor.plan_logs import COMPACT, NOW_MS, Shape, build, plan_log_dirs
from tests.support.local_round import LocalRound

Change = Callable[[Path], object]  # of a log directory that holds t-0: segments 0, 2 and 4

UUID_HEX = "0123456789abcdef0123456789abcdef"


def without(*names: str) -> Change:
    def change(root: Path) -> None:
        for name in names:
            (root / name).unlink()

    return change


def holding(name: str, data: bytes) -> Change:
    return lambda root: (root / name).write_bytes(data)


def without_snapshots(root: Path) -> None:
    for path in (root / "t-0").glob("*.snapshot"):
        path.unlink()


def with_special_dirs(root: Path) -> None:
    for name, kind in (("t-0", "delete"), ("t-0", "stray"), ("t-1", "future")):
        (root / f"{name}.{UUID_HEX}-{kind}").mkdir()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(without(f"t-0/{PARTITION_METADATA}"), id="before 2.7: no partition.metadata"),
        pytest.param(without(f"t-0/{LEADER_EPOCH_CHECKPOINT}"), id="before 0.11: no leader epochs"),
        pytest.param(holding(f"t-0/{LEADER_EPOCH_CHECKPOINT}", b""), id="F-13.3: empty epochs"),
        pytest.param(without_snapshots, id="F-14.3: no producer snapshots"),
        pytest.param(
            without(*(f"t-0/{file_name(base, TIME_INDEX)}" for base in (0, 2, 4))),
            id="before 0.10.1: no time index",
        ),
        pytest.param(
            holding(f"t-0/{file_name(0, TIME_INDEX)}", b""), id="F-16.1: empty time index"
        ),
        pytest.param(holding(f"t-0/{file_name(0, INDEX)}", b""), id="F-16.1: empty offset index"),
        pytest.param(
            without(*(f"t-0/{file_name(base, INDEX)}" for base in (0, 2, 4))),
            id="F-16.1: no offset index, which a broker rebuilds",
        ),
        pytest.param(
            without(*(checkpoint.RECOVERY_POINT, checkpoint.REPLICATION, checkpoint.LOG_START)),
            id="F-13.4: no checkpoints",
        ),
        pytest.param(without(checkpoint.CLEANER_OFFSET), id="never cleaned"),
        pytest.param(holding(checkpoint.CLEANER_OFFSET, b""), id="F-13.3: fresh, empty checkpoint"),
        pytest.param(holding(META_PROPERTIES, b"broker.id=1\n"), id="F-15.3: no version"),
        pytest.param(holding(META_PROPERTIES, b"version=0\nbroker.id=1\n"), id="F-15.3: version 0"),
        pytest.param(holding(CLEAN_SHUTDOWN, b""), id="F-15.2: empty marker"),
        pytest.param(with_special_dirs, id="F-1.3: directories that are no candidates"),
    ],
)
def test_it_loads_and_is_cleaned(local: LocalRound, tmp_path: Path, change: Change) -> None:
    root = tmp_path / "d"
    log_dir = build(root, Shape())
    change(root)
    report = local.run(plan_log_dirs([log_dir], COMPACT, NOW_MS))
    assert [(log.status, log.counts.records_kept) for log in report.logs] == [
        (LogStatus.CLEANED, 2)  # a and b of segment 2
    ]
    assert checkpoint.read(f"{log_dir}/{checkpoint.CLEANER_OFFSET}") == {("t", 0): 4}
    assert not (root / "t-0" / file_name(2, LOG)).exists()  # merged into 0
