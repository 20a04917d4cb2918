"""A session fits what its control group allows, and a kill for memory is named as one."""

from pathlib import Path

import pytest

from cleaner_jobs.spark import local_size, spark_session
from cleaner_jobs.spark.local_size import (
    MIB,
    KillWatch,
    Limit,
    Memory,
    memory,
    memory_kills,
    processors,
    size_within,
)

LIMITED = Memory(1 << 30, 1 << 29, Limit(1 << 30, "/sys/fs/cgroup"))


@pytest.mark.parametrize(
    ("limit", "cores", "heap", "tasks"),
    [
        (None, 64, 1024, 64),
        (1024, 4, 256, 1),  # 350 beside, 256 of heap, 400 of a worker
        (2048, 4, 566, 2),  # 1698 are left: a third of it, and two workers
        (16384, 4, 1024, 4),
        (16384, 64, 1024, 37),  # (16384 - 350 - 1024) / 400
        (512, 4, 256, 1),  # the least that works; doctor says that it may be too little
    ],
)
def test_the_largest_that_fits(limit: int | None, cores: int, heap: int, tasks: int) -> None:
    found = size_within(None if limit is None else limit * MIB, cores)
    assert (found.heap, found.tasks) == (f"{heap}m", tasks)
    if limit is not None and limit > 512:
        assert found.needed_bytes <= limit * MIB


def test_a_local_java_gets_this_heap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_size, "memory", lambda: LIMITED)
    options = spark_session.session_options("local[1]", str(tmp_path), {"HOME": str(tmp_path)})
    assert options["spark.driver.memory"] == "256m"
    assert options["spark.testing.reservedMemory"] == str(256 * MIB // 3), (
        "or Spark refuses such a heap"
    )
    assert "-Xmn85m" in options["spark.driver.extraJavaOptions"]


def test_a_kill_for_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    kills = [3]
    monkeypatch.setattr(local_size, "memory_kills", lambda: kills[0])
    monkeypatch.setattr(local_size, "memory", lambda: LIMITED)
    monkeypatch.setattr(spark_session, "_watches", [KillWatch()])
    gone = ConnectionRefusedError()
    assert spark_session.cause_of_failure(gone) == "Spark's Java process is gone"
    kills[0] = 4
    found = spark_session.cause_of_failure(gone)
    assert found.startswith(
        "Spark's Java process is gone: the kernel killed a process for want of memory "
        "(/sys/fs/cgroup allows 1,074 MB)"
    )
    assert found.endswith("have fewer tasks work at once: --master 'local[1]'")
    small = LIMITED._replace(limit=Limit(330 * MIB, "/sys/fs/cgroup"))
    monkeypatch.setattr(local_size, "memory", lambda: small)
    found = spark_session.cause_of_failure(gone)
    assert found.endswith("A run on this machine needs 1,055 MB or more: allow that")
    died = RuntimeError(
        "Lost task 0.0 in stage 1.0 (TID 1) (h executor driver): Python worker "
        "exited unexpectedly (crashed)"
    )
    assert "process died: the kernel killed a process for want" in (
        spark_session.cause_of_failure(died)
    )


GIB = 1 << 30
V2 = "30 23 0:26 {tree} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
V1 = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 {tree} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 {tree} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)
UNLIMITED = str((1 << 63) - 4096)  # as version 1 says it


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path, "proc/meminfo", "MemTotal:  8388608 kB\nMemAvailable:  6291456 kB\n")
    put(tmp_path, "proc/vmstat", "nr_free_pages 1\noom_kill 7\n")
    return tmp_path


def put(root: Path, path: str, text: object) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}".rstrip("\n") + "\n")


def version_2(root: Path, path: str, tree: str = "/") -> None:
    put(root, "proc/self/cgroup", f"0::{path}")
    put(root, "proc/self/mountinfo", V2.format(tree=tree))


def version_1(root: Path, path: str, tree: str = "/") -> None:
    put(root, "proc/self/cgroup", f"5:memory:{path}\n3:cpu,cpuacct:{path}\n0::/")
    put(root, "proc/self/mountinfo", V1.format(tree=tree))


def test_without_groups_it_is_the_machine(root: Path) -> None:
    assert memory(str(root)) == (8 * GIB, 6 * GIB, None)
    assert processors(str(root)) is None
    assert memory_kills(str(root)) == 7


@pytest.mark.parametrize("path", ["/", "/system.slice/compactor.service"])
def test_a_limit_of_version_2_is_that_of_the_own_group(root: Path, path: str) -> None:
    """Of a container, which sees its group as the root; below it systemd's MemoryMax."""
    version_2(root, path)
    own = f"sys/fs/cgroup{path.rstrip('/')}"
    put(root, f"{own}/memory.max", 1 * GIB)
    put(root, f"{own}/memory.current", 700 * MIB)
    put(root, f"{own}/memory.stat", f"anon 5\ninactive_file {200 * MIB}\n")
    put(root, f"{own}/cpu.max", "50000 100000")
    put(root, f"{own}/memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 2\n")
    found = memory(str(root))
    assert (found.total_bytes, found.free_bytes) == (1 * GIB, 1 * GIB - 500 * MIB)
    assert found.limit is not None and found.limit.group == str(root / own)
    assert processors(str(root)) == 1
    assert memory_kills(str(root)) == 2


def test_the_least_limit_from_the_own_group_to_the_top_counts(root: Path) -> None:
    version_2(root, "/a.slice/b.slice/c.service")
    for path, limit, used, quota in (
        ("a.slice", 3 * GIB, 2 * GIB, "250000 100000"),
        ("a.slice/b.slice", 2 * GIB, 512 * MIB, "max 100000"),
        ("a.slice/b.slice/c.service", "max", 0, "400000 100000"),
    ):
        put(root, f"sys/fs/cgroup/{path}/memory.max", limit)
        put(root, f"sys/fs/cgroup/{path}/memory.current", used)
        put(root, f"sys/fs/cgroup/{path}/cpu.max", quota)
    found = memory(str(root))
    assert (found.total_bytes, found.free_bytes) == (2 * GIB, 1 * GIB)
    assert processors(str(root)) == 3


@pytest.mark.parametrize(
    ("path", "tree", "below"),
    [
        ("/docker/0123", "/", "/docker/0123"),  # of a host
        ("/docker/0123", "/docker/0123", ""),  # in a container that has its part mounted
        ("/docker/0123", "/elsewhere", ""),  # or one whose name it cannot know
    ],
)
def test_a_limit_of_version_1_is_found_below_its_mount(
    root: Path, path: str, tree: str, below: str
) -> None:
    version_1(root, path, tree)
    own = f"sys/fs/cgroup/memory{below}"
    put(root, f"{own}/memory.limit_in_bytes", 1 * GIB)
    put(root, f"{own}/memory.usage_in_bytes", 900 * MIB)
    put(root, f"{own}/memory.stat", f"inactive_file 1\ntotal_inactive_file {400 * MIB}\n")
    put(root, f"{own}/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    put(root, f"sys/fs/cgroup/cpu,cpuacct{below}/cpu.cfs_quota_us", 150000)
    put(root, f"sys/fs/cgroup/cpu,cpuacct{below}/cpu.cfs_period_us", 100000)
    found = memory(str(root))
    assert (found.total_bytes, found.free_bytes) == (1 * GIB, 1 * GIB - 500 * MIB)
    assert processors(str(root)) == 2
    assert memory_kills(str(root)) == 3


def test_version_1_has_a_number_for_no_limit(root: Path) -> None:
    version_1(root, "/a/b")
    for path in ("", "/a", "/a/b"):
        put(root, f"sys/fs/cgroup/memory{path}/memory.limit_in_bytes", UNLIMITED)
        put(root, f"sys/fs/cgroup/memory{path}/memory.usage_in_bytes", 7 * GIB)
        put(root, f"sys/fs/cgroup/cpu,cpuacct{path}/cpu.cfs_quota_us", -1)
        put(root, f"sys/fs/cgroup/cpu,cpuacct{path}/cpu.cfs_period_us", 100000)
    assert memory(str(root)) == (8 * GIB, 6 * GIB, None)
    assert processors(str(root)) is None


def test_a_limit_above_what_the_machine_has_is_none(root: Path) -> None:
    version_2(root, "/")
    put(root, "sys/fs/cgroup/memory.max", 100 * GIB)
    put(root, "sys/fs/cgroup/memory.current", 1 * GIB)
    assert memory(str(root)).limit is None
