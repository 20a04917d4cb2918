"""What `doctor` says of a machine and of log directories; it changes nothing."""

import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from cleaner_jobs.machine_size import Limit, Memory
from cleaner_jobs.spark.environment import setting_of
from compactor import api
from compactor.api import Grade
from compactor.diagnosis import log_dir_checks as of_log_dirs
from compactor.diagnosis import machine_checks, spark_checks
from compactor.diagnosis.checks import Check
from compactor.host import machine
from storage.formats import meta_properties, partition_metadata
from storage.formats.meta_properties import MetaProperties
from storage.formats.partition_metadata import PARTITION_METADATA
from storage.log.cluster_metadata import METADATA_DIR
from tests.compactor.plan_logs import NOW_MS, Shape, build
from tests.compactor.settings.test_cluster_settings import registration
from tests.storage.log.test_cluster_metadata import batches, log, topic
from tests.support.file_states import state_of
from tests.support.local_command import run_command
from tests.support.private_mounts import python_with_mounts


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """As a broker that was stopped cleanly leaves it."""
    root = tmp_path / "data"
    build(root, Shape("t", 0), Shape("t", 1))
    meta_properties.write(str(root), MetaProperties(1, "a-cluster", 7, None))
    (root / METADATA_DIR).mkdir()
    note = partition_metadata.read(str(root / "t-0" / PARTITION_METADATA))
    log(root / METADATA_DIR, 0, batches(0, topic("t", note.topic_id), registration(7)))
    return root


def found(log_dir: Path, subject: str) -> Check:
    [(_, checks)] = api.doctor([str(log_dir)]).log_dirs
    (check,) = (check for check in checks if check.subject == subject)
    return check


def test_a_directory_in_good_order_has_nothing_to_be_done(data: Path) -> None:
    before = state_of(data)
    checks = of_log_dirs.log_dir_checks(str(data), NOW_MS * 10**9)
    assert [(c.subject, c.advice) for c in checks if c.grade is not Grade.OK] == []
    assert checks[0].found == "2 logs, 474 B; broker 7 of cluster a-cluster"
    assert state_of(data) == before


def test_without_a_metadata_log_settings_have_to_be_given(data: Path) -> None:
    shutil.rmtree(data / METADATA_DIR)
    check = found(data, "settings of topics")
    assert check.grade is Grade.WARN
    assert "--topic-configs FILE" in (check.advice or "")


def test_the_metadata_log_may_be_in_another_of_the_directories(data: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    build(second, Shape("u", 0))
    meta_properties.write(str(second), MetaProperties(1, "a-cluster", 7, None))
    ended = run_command("doctor", data, second, "--format", "json")
    for log_dir in ended.summary["log_dirs"]:
        (check,) = (c for c in log_dir["checks"] if c["subject"] == "settings of topics")
        where = f"in {data / METADATA_DIR}, the cluster's metadata log"
        assert (check["grade"], check["found"]) == ("ok", where)


def test_files_that_were_written_after_now_are_told(data: Path) -> None:
    checks = of_log_dirs.log_dir_checks(str(data), NOW_MS)
    (check,) = (check for check in checks if check.subject == "times of files")
    assert check.grade is Grade.WARN


def test_another_owner_is_to_be_worked_as(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1)
    check = found(data, "permissions")
    assert check.grade is Grade.WARN
    assert "sudo -u " in (check.advice or "")
    write = os.W_OK
    monkeypatch.setattr(
        os, "access", lambda path, mode: str(data) not in str(path) or not mode & write
    )
    check = found(data, "permissions")
    assert check.grade is Grade.WARN
    assert f"may not read and write {data}, {data}/t-0, {data}/t-1" in check.found
    (check,) = api.doctor([str(data)]).run
    assert (check.subject, check.grade) == ("a run", Grade.FAIL)
    assert check.found.startswith(f"LOG_DIR {data}: no permission to write")


def test_a_log_that_has_no_room_beside_itself_is_named(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Room = namedtuple("Room", "f_bavail f_frsize f_flag f_files f_favail")
    monkeypatch.setattr(os, "statvfs", lambda _: Room(100, 1, 0, 0, 0))
    check = found(data, "room")
    assert check.grade is Grade.WARN
    assert check.found == "100 B free, and the largest log, t-0, has 237 B"


def test_a_cache_that_cannot_be_kept_is_a_warning_with_its_cause(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert machine_checks.why_not_kept_in(str(tmp_path / "not there yet")) is None
    assert machine_checks.why_not_kept_in(str(file / "cache")) == f"{file} is no directory"
    environ = {"NUMBA_CACHE_DIR": str(file), "XDG_CACHE_HOME": str(file), "HOME": str(tmp_path)}
    checks = {check.subject: check for check in machine_checks.machine_checks(environ)}
    for subject, variable in (("cache", "XDG_CACHE_HOME"), ("kernels' cache", "NUMBA_CACHE_DIR")):
        assert checks[subject].grade is Grade.WARN
        assert checks[subject].found == f"{file} is no directory"
        assert variable in (checks[subject].advice or "")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("ro", "{} is on a read-only file system"),
        ("size=4k", "no room on the file system of {}"),
        ("nr_inodes=2", "no inode is free on the file system of {}"),
    ],
)
def test_so_is_one_on_a_disk_that_takes_nothing(tmp_path: Path, options: str, problem: str) -> None:
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from compactor.diagnosis.machine_checks import why_not_kept_in\n"
        f"disk = Path({str(tmp_path)!r})\n"
        f"{options!r} == 'ro' or (disk / 'file').write_bytes(b'-' * {4096 * (options[0] == 's')})\n"
        "print(why_not_kept_in(str(disk / 'cache')))"
    )
    done = python_with_mounts([f"-t tmpfs -o {options} none {tmp_path}"], code)
    assert done.stdout == f"{problem.format(tmp_path)}\n", done.stderr


def test_what_a_limited_group_allows_is_told_with_what_a_run_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """1 GiB, as many a container has: one task, and 256 MiB of heap."""
    of_group = Limit(1 << 30, "/sys/fs/cgroup")
    for free, grade in (((1 << 30) - 4096, Grade.OK), (700 << 20, Grade.WARN)):
        there = Memory(1 << 30, free, of_group)
        monkeypatch.setattr(machine_checks, "memory", lambda there=there: there)
        (check,) = (
            c for c in machine_checks.machine_checks(os.environ) if c.subject == "memory and cores"
        )
        assert check.grade is grade
        assert "free of the 1.1 GB that /sys/fs/cgroup allows" in check.found
        assert "a run needs up to 1.1 GB, 1 task at once" in check.found


def test_too_few_open_files_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "open_file_limit", lambda: 512)
    (check,) = (c for c in machine_checks.machine_checks(os.environ) if c.subject == "open files")
    assert check.grade is Grade.FAIL
    assert "LimitNOFILE=4096" in (check.advice or "")


def test_little_memory_leads_to_fewer_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """400 MiB for each worker, a third of the rest for Java: 2 GiB have room for two."""
    monkeypatch.setattr(machine_checks, "memory", lambda: Memory(8 << 30, 2 << 30, None))
    monkeypatch.setattr(machine_checks, "cores", lambda: 8)
    (check,) = (
        c for c in machine_checks.machine_checks(os.environ) if c.subject == "memory and cores"
    )
    assert check.grade is Grade.WARN
    assert "--master 'local[2]'" in (check.advice or "")


def test_without_java_all_else_is_looked_at_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_java(_: object) -> None:
        raise api.CleaningFailedError("No Java that Spark runs on was found")

    monkeypatch.setattr(spark_checks, "find_java", no_java)
    environ = {"HOME": str(tmp_path)}
    checks = spark_checks.spark_checks(environ, starts=True)
    assert [(c.subject, c.grade) for c in checks] == [
        ("engine", Grade.OK),
        ("Java", Grade.WARN),
        ("Spark", Grade.OK),
        ("kernels", Grade.WARN),
    ]
    assert "since there is no Java" in checks[0].found
    assert not list(tmp_path.iterdir())


def test_another_spark_than_that_of_pyspark_is_for_clusters_alone(tmp_path: Path) -> None:
    """A run on this machine takes the jars of pyspark; one on a cluster would take these."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-3.5.1.jar").touch()
    environ = dict(os.environ) | {"SPARK_HOME": str(tmp_path)}
    checks = {c.subject: c for c in spark_checks.spark_checks(environ, False)}
    assert checks["Spark"].grade is Grade.OK
    check = checks["Spark's settings"]
    assert check.grade is Grade.WARN
    jars = f"the jars in {tmp_path / 'jars'}, which SPARK_HOME={tmp_path} names, are 3.5.1"
    assert jars in check.found
    assert (check.advice or "").startswith("Unset SPARK_HOME, ")


def test_a_port_that_makes_a_run_one_of_spark_submit_is_named() -> None:
    environ = dict(os.environ) | {"PYSPARK_GATEWAY_PORT": "12345", "SPARK_HOME": "/spark"}
    checks = spark_checks.spark_checks(environ, False)
    (check,) = (check for check in checks if check.subject == "Spark's settings")
    assert check.grade is Grade.WARN and check.found.startswith("PYSPARK_GATEWAY_PORT=12345: ")


def test_settings_of_another_spark_are_named_with_what_they_count_for(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.jars.packages org.a:b:1\n")
    given = {"SPARK_CONF_DIR": str(tmp_path), "SPARK_REMOTE": "sc://host"}
    environ = {n: v for n, v in os.environ.items() if setting_of(n) is None} | given
    checks = [
        check
        for check in spark_checks.spark_checks(environ, False)
        if check.subject == "Spark's settings"
    ]
    assert [(check.grade, check.found) for check in checks] == [
        (
            Grade.OK,
            f"SPARK_CONF_DIR={tmp_path}; {tmp_path}/spark-defaults.conf (spark.jars.packages): "
            "only for --master with a cluster's URL",
        ),
        (Grade.OK, "SPARK_REMOTE=sc://host: not used"),
    ]


def test_the_command_ends_with_4_where_a_run_would_not_work(data: Path, tmp_path: Path) -> None:
    ended = run_command("doctor", data)
    assert (ended.code, ended.summary["status"]) == (0, "ok")
    assert "A run can be done" in ended.out
    ended = run_command("doctor", data, tmp_path / "nowhere", "--format", "json")
    assert ended.code == ended.summary["exit_code"] == 4
    (_, nowhere) = ended.summary["log_dirs"]
    assert nowhere["checks"] == [
        {
            "subject": "log directory",
            "grade": "fail",
            "found": f"LOG_DIR {tmp_path}/nowhere: No such file or directory",
            "advice": None,
        }
    ]


def test_files_in_a_partition_that_are_not_kafkas_are_named(data: Path) -> None:
    assert found(data, "foreign files").grade is Grade.OK
    (data / "t-1" / "00000000000000000000.log.gz").write_bytes(b"")
    check = found(data, "foreign files")
    assert check.grade is Grade.WARN
    assert check.found == "1 file not of Kafka's: t-1/00000000000000000000.log.gz"


@pytest.mark.parametrize(("value", "is_named"), [("1", True), ("0", False), ("", False)])
def test_kernels_that_are_not_compiled_are_named_by_doctor_and_run(
    value: str, is_named: bool, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", value)
    (check,) = (c for c in api.doctor([str(data)]).machine if c.subject == "kernels")
    assert ("NUMBA_DISABLE_JIT=1: no kernel is compiled" in check.found) is is_named
    told: list[str] = []
    options = api.RunOptions(in_process=True, dry_run=True)
    api.run(str(data), api.Rules(), options, lambda event: told.append(str(event)))
    assert any("NUMBA_DISABLE_JIT=1" in text for text in told) is is_named
