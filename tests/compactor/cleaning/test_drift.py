"""A log of which any file changes between survey and swap is given up, untouched, and reported."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compactor.cleaning import swapper
from compactor.finalizer import StagedGroup, swap_group
from compactor.outcome.round_report import LogStatus
from compactor.planning.round_plan import RoundPlan
from compactor.settings.config import load_config
from storage.file_names import INDEX, LOG, SNAPSHOT, TIME_INDEX, TXN_INDEX, file_name
from storage.files.files import Files
from storage.formats import checkpoint
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from tests.compactor.plan_logs import plan_log_dirs
from tests.support.local_round import LocalRound, Rows
from tests.support.log_builder import Batch, BuiltLog, Message, build_log_dir
from tests.support.made_log import files_of

NOW_MS = 1_700_000_100_000
BASES = (0, 4, 8)  # the last one of the active segment


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """orders-0 and other-0: two segments and an active one each."""
    root = tmp_path / "logs"
    segments = tuple(
        tuple(
            Batch((Message(b"a", b"%d" % offset, 5), Message(b"b", b"", 5)))
            for offset in range(base, base + 4, 2)
        )
        for base in BASES
    )
    logs = (BuiltLog(topic, 0, segments, index_interval_bytes=0) for topic in ("orders", "other"))
    build_log_dir(root, *logs)
    return root


def planned(log_dir: Path, segment_bytes: int = 1 << 30) -> RoundPlan:
    settings = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0",
        "segment.bytes": str(segment_bytes),
    }
    return plan_log_dirs([str(log_dir)], load_config(None, None, settings), NOW_MS)


def touch(path: Path) -> None:
    os.utime(path, ns=(5, 5))


def grow(path: Path) -> None:
    data, times = path.read_bytes(), path.stat()
    path.write_bytes(data + b"\0")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def replace(path: Path) -> None:
    times = path.stat()
    path.with_name("other").write_bytes(path.read_bytes())
    os.utime(path.with_name("other"), ns=(times.st_atime_ns, times.st_mtime_ns))
    path.with_name("other").rename(path)


def patch(path: Path) -> None:
    """A byte in place, and the time of modification as it was."""
    times = path.stat()
    with path.open("r+b") as file:
        data = file.read()
        file.seek(0)
        file.write(bytes([data[0] ^ 1]) if data else b"")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


WAYS: list[Callable[[Path], None]] = [touch, grow, replace, patch, Path.unlink]
FILES = [
    *(file_name(0, kind) for kind in (LOG, INDEX, TIME_INDEX)),
    *(file_name(8, kind) for kind in (LOG, INDEX, SNAPSHOT)),
    LEADER_EPOCH_CHECKPOINT,
]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("moment", ["scan", "rewrite", "swap"])
def test_a_log_of_which_a_file_changes_is_given_up(
    local: LocalRound, log_dir: Path, moment: str, way: Callable[[Path], None], file: str
) -> None:
    path = log_dir / "orders-0" / file
    if not path.exists():
        path.write_bytes(b"")
    plan, left = planned(log_dir), {}

    def change() -> None:
        way(path)
        files = files_of(path.parent)
        left.update({name: data for name, data in files.items() if ".compactor-" not in name})

    def after(rows: Rows) -> Rows:
        change()
        return rows

    if moment == "swap":
        local.after["rewrite"] = after
    else:
        local.before[moment] = change
    logs = {log.topic: log for log in local.run(plan).logs}
    assert logs["other"].status is LogStatus.CLEANED
    assert logs["orders"].status in (LogStatus.FAILED, LogStatus.SET_ASIDE)
    assert (logs["orders"].reason or "").startswith(str(path))
    assert files_of(path.parent) == left
    entries = checkpoint.read(str(log_dir / checkpoint.CLEANER_OFFSET))
    assert entries == {("other", 0): BASES[-1]}


@pytest.mark.parametrize("name", [file_name(12, LOG), file_name(0, TXN_INDEX)])
def test_so_is_one_to_which_a_file_is_added(local: LocalRound, log_dir: Path, name: str) -> None:
    plan = planned(log_dir)
    local.before["rewrite"] = (log_dir / "orders-0" / name).touch
    log = next(log for log in local.run(plan).logs if log.topic == "orders")
    told = "new since the round was planned: the log is in use"
    assert (log.status, log.reason) == (LogStatus.FAILED, f"{log_dir}/orders-0/{name}: {told}")


@pytest.mark.parametrize("file", [file_name(4, INDEX), file_name(8, SNAPSHOT), file_name(8, LOG)])
def test_a_change_before_the_second_swap_leaves_the_second_group(
    local: LocalRound, log_dir: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    """C-6.5: the first group stays swapped in; nothing else of the log is touched."""
    path = log_dir / "orders-0" / file
    plan = planned(log_dir, segment_bytes=1)
    assert [len(log.groups) for log in plan.logs] == [2, 2]

    def swap(files: Files, group: StagedGroup, *others: Any) -> None:
        swap_group(files, group, *others)
        if group.path == str(path.parent):
            touch(path)

    monkeypatch.setattr(swapper, "swap_group", swap)
    before = files_of(path.parent)
    logs = {log.topic: log for log in local.run(plan).logs}
    assert logs["other"].status is LogStatus.CLEANED
    assert logs["orders"].status is LogStatus.FAILED
    assert (logs["orders"].reason or "").startswith(f"{path}: changed since")
    after, first = files_of(path.parent), file_name(0, "")
    assert before != after
    assert {name: data for name, data in after.items() if not name.startswith(first)} == {
        name: data for name, data in before.items() if not name.startswith(first)
    }
