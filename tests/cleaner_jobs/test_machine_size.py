"""Memory and processors are those that the control groups of either version allow."""

from pathlib import Path

import pytest

from cleaner_jobs.machine_size import MIB, memory, memory_kills, processors

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
