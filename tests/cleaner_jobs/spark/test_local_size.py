"""A session fits what its control group allows, and a kill for memory is named as one."""

from pathlib import Path

import pytest

from cleaner_jobs import machine_size
from cleaner_jobs.machine_size import MIB, Limit, Memory
from cleaner_jobs.spark import local_size, spark_session
from cleaner_jobs.spark.local_size import kill_watch, size_within

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
    monkeypatch.setattr(machine_size, "memory_kills", lambda: kills[0])
    monkeypatch.setattr(machine_size, "memory", lambda: LIMITED)
    monkeypatch.setattr(spark_session, "_watches", [kill_watch()])
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
    monkeypatch.setattr(machine_size, "memory", lambda: small)
    found = spark_session.cause_of_failure(gone)
    assert found.endswith("A run on this machine needs 1,055 MB or more: allow that")
    died = RuntimeError(
        "Lost task 0.0 in stage 1.0 (TID 1) (h executor driver): Python worker "
        "exited unexpectedly (crashed)"
    )
    assert "process died: the kernel killed a process for want" in (
        spark_session.cause_of_failure(died)
    )
