"""What the file systems are asked, and how many tasks a master URL lets work at once."""

import os
from pathlib import Path

import pytest

from cleaner_jobs.spark.local_size import Limit, Memory
from compactor.planning import room
from compactor.planning.room import cores_of, places_of
from tests.compactor.small_rounds import GROUPS, logs_in
from tests.support.made_log import plan_of


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[3,2]", 3),
        ("local[*]", os.cpu_count()),
        (None, os.cpu_count()),
        ("local-cluster[2,1,1024]", None),
        ("spark://host:7077", None),
        ("yarn", None),
    ],
)
def test_how_many_tasks_work_at_once(master: str | None, cores: int | None) -> None:
    assert cores_of(master) == cores


def test_a_directory_that_is_still_to_be_made_is_where_it_will_be(tmp_path: Path) -> None:
    log = plan_of(logs_in(tmp_path), GROUPS, 12)
    found = places_of([log], str(tmp_path / "not" / "yet"), str(tmp_path / "originals"))
    device = tmp_path.stat().st_dev
    assert (found.logs, found.work_dir, found.originals) == ({log.path: device}, device, device)
    assert found.rooms[device].path == log.log_dir
    assert found.rooms[device].free_bytes > 0


@pytest.mark.parametrize(("files", "free"), [(1000, 7), (0, None)])
def test_a_file_system_may_have_no_limit_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int, free: int | None
) -> None:
    """btrfs tells of none at all."""
    log = plan_of(logs_in(tmp_path), GROUPS, 12)
    values = os.statvfs_result((4096, 1024, 90, 50, 40, files, 9, 7, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: values)
    (room,) = places_of([log], str(tmp_path)).rooms.values()
    assert (room.free_bytes, room.free_files) == (40 * 1024, free)


def test_a_limited_group_has_its_memory_told(monkeypatch: pytest.MonkeyPatch) -> None:
    there = Memory(1 << 30, 1 << 29, Limit(1 << 30, Path("/sys/fs/cgroup")))
    monkeypatch.setattr(room, "memory", lambda: there)
    assert room.memory_notices(is_needed=False) == []
    assert room.memory_notices(is_needed=True) == [
        "Memory: a run here needs up to 1.1 GB with 1 task at once; 536.9 MB free of the 1.1 GB "
        "that /sys/fs/cgroup allows"
    ]
