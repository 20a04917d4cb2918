"""What a round needs of each file system, counted by hand; and whose logs are left out for it."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from cleaner_jobs.machine_size import Limit, Memory
from cleaner_jobs.messages import LogPlan, SegmentGroup
from compactor.planning import layout, space
from compactor.planning.space import (
    WORK_BYTES,
    Need,
    Places,
    Room,
    cores_of,
    places_of,
    plan_space,
    rewritten_bytes,
    staged_peak,
)
from storage.file_names import Segment
from tests.compactor.small_rounds import GROUPS, logs_in
from tests.support.made_log import plan_of

MIB = 1 << 20
DATA, OTHER, WORK, ORIGINALS = 1, 2, 3, 4
AMPLE = 1 << 50
CORES = 2


def log(name: str, *group_mib: int) -> LogPlan:
    """Groups of these sizes, each of two segments."""
    groups = tuple(
        SegmentGroup(
            tuple(Segment(1000 * n + half, size * MIB // 2, 0, 0, None, 0, 0) for half in range(2))
        )
        for n, size in enumerate(group_mib)
    )
    return LogPlan(0, "/d", name, 0, f"/d/{name}-0", 0, 1, groups, 0, 0, 0, ())


def places(*logs: LogPlan, originals: int | None = None, work: int = WORK, **free: int) -> Places:
    """Ample room everywhere, but on the file systems named."""
    rooms = {
        device: Room(f"/{name}", free.get(name, AMPLE), free.get(f"{name}_files"))
        for device, name in ((DATA, "data"), (OTHER, "other"), (WORK, "work"), (ORIGINALS, "kept"))
    }
    devices = {log.path: OTHER if log.topic.startswith("other") else DATA for log in logs}
    return Places(rooms, devices, work, originals)


def of_groups(*group_mib: int) -> int:
    """An eighth more than the logs have, and four files of at most a block that they end in."""
    return sum(size * MIB + size * MIB // 8 + 4 * 4096 for size in group_mib)


def test_all_that_fits_into_the_hands_of_the_tasks_is_there_twice() -> None:
    """Up to 512 MiB a core nothing has to wait: every group may be staged at once."""
    one, two = log("a", 100, 50), log("b", 200)
    found = plan_space([one, two], places(one, two), CORES)
    assert found.left_out == {}
    assert found.needs[DATA] == Need(of_groups(100, 50, 200), 3 * 4)
    # a map of 30 bytes for 100 of log; piece size 350 / 2 MiB, of which no group has 1.5
    map_bytes = 150 * MIB // 100 * 30 + 200 * MIB // 100 * 30
    assert found.needs[WORK] == Need(WORK_BYTES + map_bytes, 0)


def test_of_large_logs_what_is_at_work_and_the_largest_group() -> None:
    """16 GiB in tasks of 512 MiB: 2 at work and as much waiting, and a group that is joined."""
    large = log("a", *[1024] * 15, 512, 512)
    found = plan_space([large], places(large), CORES)
    in_flight = 2 * CORES * 512 * MIB
    assert layout.in_flight_bytes(large.log_bytes, CORES) == in_flight
    assert found.needs[DATA].bytes == rewritten_bytes(in_flight) + rewritten_bytes(1024 * MIB)
    assert found.needs[DATA].bytes < large.log_bytes // 4


def test_how_many_work_at_once_may_be_unknown() -> None:
    large = log("a", *[1024] * 16)
    found = plan_space([large], places(large), None)
    assert found.needs[DATA].bytes == of_groups(*[1024] * 16)


def test_where_nothing_is_swapped_in_before_the_end_all_is_staged_at_once() -> None:
    """So `--on-corrupt fail` has it."""
    large = log("a", *[1024] * 16)
    found = plan_space([large], places(large), CORES, all_staged=True)
    assert found.needs[DATA].bytes == of_groups(*[1024] * 16)


@pytest.mark.parametrize(
    ("log_bytes", "cores", "expected"),
    [
        (0, 1, 0),
        (512 * MIB, 1, 512 * MIB),
        (513 * MIB, 1, 513 * MIB),  # two tasks, one after the other: the second of them waits
        (10 * 512 * MIB, 1, 2 * 512 * MIB),
        (10 * 512 * MIB, 8, 10 * 512 * MIB),
        (1 << 40, 2, 2 * 2 * (1 << 40) // 64),  # no more than 32 tasks a core
    ],
)
def test_what_is_in_flight(log_bytes: int, cores: int, expected: int) -> None:
    assert layout.in_flight_bytes(log_bytes, cores) == expected


def test_a_group_that_several_tasks_share_is_in_the_work_directory_too() -> None:
    shared = log("a", 300)
    found = plan_space([shared], places(shared), CORES)
    assert found.needs[WORK].bytes == WORK_BYTES + 300 * MIB // 100 * 30 + of_groups(300)
    assert found.needs[WORK].files == 2


def test_a_work_directory_on_the_same_file_system_adds_up() -> None:
    one = log("a", 100, 100)
    apart = plan_space([one], places(one), CORES).needs
    together = plan_space([one], places(one, work=DATA), CORES).needs
    assert set(together) == {DATA}
    assert together[DATA].bytes == apart[DATA].bytes + apart[WORK].bytes


def test_links_free_nothing_and_copies_need_as_much_elsewhere() -> None:
    large = log("a", *[1024] * 16)
    links = plan_space([large], places(large, originals=DATA), CORES)
    assert links.needs[DATA] == Need(of_groups(*[1024] * 16), 16 * (4 + 2))
    copies = plan_space([large], places(large, originals=ORIGINALS), CORES)
    assert copies.needs[DATA] == plan_space([large], places(large), CORES).needs[DATA]
    assert copies.needs[ORIGINALS].bytes >= large.log_bytes
    assert copies.needs[ORIGINALS].files == 16 * (2 * 4 + 2)


def test_logs_that_do_not_fit_are_left_out_and_those_behind_them_go_on() -> None:
    first, large, last = log("a", 100), log("b", 400), log("c", 50)
    logs = first, large, last
    found = plan_space(logs, places(*logs, data=of_groups(100, 50)), CORES)
    assert list(found.left_out) == ["/d/b-0"]
    assert found.left_out["/d/b-0"].startswith("no room: up to ")
    assert " are needed at /data, " in found.left_out["/d/b-0"]
    assert found.needs[DATA].bytes == of_groups(100, 50)
    one_less = plan_space(logs, places(*logs, data=of_groups(100, 50) - 1), CORES)
    assert list(one_less.left_out) == ["/d/b-0", "/d/c-0"]


def test_one_file_system_does_not_keep_the_logs_of_another_from_going_on() -> None:
    full, other = log("a", 100), log("other", 100)
    found = plan_space([full, other], places(full, other, data=5), CORES)
    assert list(found.left_out) == ["/d/a-0"]
    assert DATA not in found.needs and found.needs[OTHER].bytes == of_groups(100)


@pytest.mark.parametrize("name", ["data", "work"])
def test_files_may_be_what_is_missing(name: str) -> None:
    one = log("a", 100, 100)
    of = places(one, work=DATA if name == "data" else WORK, **{f"{name}_files": 7})
    found = plan_space([one], of, CORES)
    if name == "work":  # no group is shared
        assert found.left_out == {}
    else:
        assert found.left_out["/d/a-0"] == ("no room: up to 8 files needed at /data, room for 7")


def test_nothing_to_clean_needs_nothing() -> None:
    assert plan_space([], places(), CORES).needs == {WORK: Need()}
    assert plan_space([replace(log("a"), groups=())], places(log("a")), 1).left_out == {}


def test_peaks() -> None:
    assert staged_peak(10, 10, 0) == 10
    assert staged_peak(10**9, 10**6, 8 * 10**6) == 9 * 10**6 + 16384 + 10**6


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
    (space,) = places_of([log], str(tmp_path)).rooms.values()
    assert (space.free_bytes, space.free_files) == (40 * 1024, free)


def test_a_limited_group_has_its_memory_told(monkeypatch: pytest.MonkeyPatch) -> None:
    there = Memory(1 << 30, 1 << 29, Limit(1 << 30, "/sys/fs/cgroup"))
    monkeypatch.setattr(space, "memory", lambda: there)
    assert space.memory_notices(is_needed=False) == []
    assert space.memory_notices(is_needed=True) == [
        "Memory: a run here needs up to 1.1 GB with 1 task at once; 536.9 MB free of the 1.1 GB "
        "that /sys/fs/cgroup allows"
    ]
