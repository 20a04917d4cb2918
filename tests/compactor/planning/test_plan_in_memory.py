"""A plan reads through the files that it is given alone, and changes nothing: none is on disk."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cleaner_jobs.messages import LogPlan
from compactor.planning.candidate import RoundClock
from compactor.planning.evaluation import EvaluationRequest
from compactor.planning.round_plan import RoundPlan, plan_round
from compactor.settings.config import Config
from storage.file_names import INDEX, LOG, file_name
from storage.files.files import Files
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from tests.compactor.plan_logs import (
    COMPACT,
    NOW_MS,
    Shape,
    build,
    clean_up_to,
    open_transaction,
    plan_log_dirs,
    with_settings,
)
from tests.support.files.memory import in_memory
from tests.support.files.watched import Operation, WatchedFiles


def planned(log_dir: str, files: Files, config: Config = COMPACT) -> RoundPlan:
    clock = RoundClock(NOW_MS, config.producer_id_expiration_ms)
    asked = EvaluationRequest(
        log_dirs=[log_dir], config=config, clock=clock, problems={}, files=files
    )
    return plan_round(asked)


def without_identity(log: LogPlan) -> LogPlan:
    """Without what is another file's on another disk: inodes, devices, times."""
    groups = tuple(
        replace(
            group,
            segments=tuple(
                segment._replace(log_mtime_ns=0, log_inode=0, log_ctime_ns=0, log_device=0)
                for segment in group.segments
            ),
        )
        for group in log.groups
    )
    files = tuple(entry._replace(mtime_ns=0, inode=0, ctime_ns=0, device=0) for entry in log.files)
    return replace(log, groups=groups, files=files)


def as_it_was(root: Path) -> None:
    """Nothing is changed."""
    assert root.is_dir()


def damage_epochs(root: Path) -> None:
    (root / "t-0" / LEADER_EPOCH_CHECKPOINT).write_bytes(b"0\n1\n0\n")


CASES: dict[str, tuple[Config, Callable[[Path], object]]] = {
    "as it was left": (COMPACT, as_it_was),
    "cleaned before": (COMPACT, lambda root: clean_up_to(root, ("t", 0, 4), ("v", 0, 99))),
    "no index": (COMPACT, lambda root: (root / "t-0" / file_name(2, INDEX)).unlink()),
    "no index of the last": (COMPACT, lambda root: (root / "t-0" / file_name(4, INDEX)).unlink()),
    "cut short": (COMPACT, lambda root: (root / "t-0" / file_name(4, LOG)).write_bytes(b"0")),
    "open transaction": (COMPACT, lambda root: open_transaction(root / "u-0", 7, 2, 6)),
    "lags": (with_settings({"min.compaction.lag.ms": "998000"}), as_it_was),
    "overdue": (with_settings({"max.compaction.lag.ms": "1000"}), as_it_was),
    "retention": (
        with_settings({"cleanup.policy": "compact,delete", "retention.ms": "998500"}),
        as_it_was,
    ),
    "leader epochs": (
        with_settings({"cleanup.policy": "compact,delete", "retention.ms": "1"}),
        damage_epochs,
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_it_is_the_plan_of_the_same_files_on_disk(tmp_path: Path, name: str) -> None:
    config, change = CASES[name]
    log_dir = build(tmp_path / "d", Shape("t"), Shape("u", producer_id=7))
    change(tmp_path / "d")
    on_disk = plan_log_dirs([log_dir], config, NOW_MS)
    files = WatchedFiles(in_memory(tmp_path / "d"))
    shutil.rmtree(log_dir)
    found = planned(log_dir, files, config)
    assert [*map(without_identity, found.logs)] == [*map(without_identity, on_disk.logs)]
    assert found.not_cleaned == on_disk.not_cleaned
    assert len(found.logs) + len(found.not_cleaned) == 2
    assert found.checkpoint_repairs == on_disk.checkpoint_repairs
    assert [(log.topic, log.limits, log.estimate.log_start_offset) for log in found.retention] == [
        (log.topic, log.limits, log.estimate.log_start_offset) for log in on_disk.retention
    ]
    assert files.changes == []


def test_a_log_that_vanishes_meanwhile(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d", Shape("t"), Shape("u"))
    files = in_memory(tmp_path / "d")
    path = f"{log_dir}/t-0/{file_name(4, LOG)}"

    def vanish(operation: Operation) -> None:
        if operation == Operation("open", (path,)):
            files.remove(path)

    found = planned(log_dir, WatchedFiles(files, vanish))
    assert [log.name for log in found.logs] == ["u-0"]
    (report,) = found.not_cleaned
    assert report.reason == f"{path}: No such file or directory"


def test_a_log_that_cannot_be_listed_is_set_aside(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d", Shape("t"), Shape("u"))

    def refuse(operation: Operation) -> None:
        if operation == Operation("list_directory", (f"{log_dir}/u-0",)):
            raise PermissionError(13, "Permission denied", *operation.paths)

    found = planned(log_dir, WatchedFiles(in_memory(tmp_path / "d"), refuse))
    assert [log.name for log in found.logs] == ["t-0"]
    (report,) = found.not_cleaned
    assert (report.topic, report.reason) == ("u", "cannot be listed: Permission denied")


@pytest.mark.parametrize("logs", [1, 5])
def test_what_it_reads_of_a_log(tmp_path: Path, logs: int) -> None:
    """Each directory is listed once. Of a log that is taken the last index, the last segment (for
    its end; the snapshot of producers is there, too) and the last snapshot are read, and of the two
    segments before it the last index entry and the log behind that, for where they end."""
    log_dir = build(tmp_path / "d", *(Shape(f"t{number}") for number in range(logs)))
    files = WatchedFiles(in_memory(tmp_path / "d"))
    assert len(planned(log_dir, files).logs) == logs
    checkpoints, manifest_of_a_copy, marks_of_copies = 4, 1, 3
    assert files.counts == {
        "list_directory": 1 + logs,
        "exists": 1 + marks_of_copies,  # the file with the high watermarks
        "read_bytes": checkpoints + manifest_of_a_copy + logs,
        "open": (2 + 2 * 2) * logs,
    }
