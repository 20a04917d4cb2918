"""What `plan` and `doctor` say of a run is what a run comes to: verdict, reason code, exit code."""

import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compactor.cleaning import cleaner_manager
from compactor.host import java
from compactor.jobs import engine_choice
from storage.formats import checkpoint, clean_shutdown, meta_properties, partition_metadata
from storage.formats.meta_properties import MetaProperties
from storage.formats.partition_metadata import PartitionMetadata, encode_uuid
from storage.log.cluster_metadata import METADATA_DIR
from tests.compactor.log_dirs.test_locked_log_dirs import other_process
from tests.compactor.plan_logs import Shape, build
from tests.compactor.settings.test_cluster_settings import OTHER, registration
from tests.obstacles.loaded import load_all
from tests.storage.log.test_cluster_metadata import A, B, batches, config, log, topic
from tests.support.file_states import state_of
from tests.support.local_command import Ended, run_command, use_local_rounds
from tests.support.unprivileged import as_user, directory_for_all, give

ENGINE_OF_RUNS = cleaner_manager._engine
COMPACTED = "__consumer_offsets"  # whose policy is known without any settings


@pytest.fixture(scope="module", autouse=True)
def _loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    load_all(tmp_path_factory.mktemp("loaded") / "all")


@pytest.fixture
def place() -> Iterator[Path]:
    with directory_for_all() as path:
        yield path


@pytest.fixture
def data(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two logs that a run cleans, of a broker that stopped cleanly; as a user who owns them."""
    root = place / "data"
    build(root, Shape(COMPACTED, 0), Shape(COMPACTED, 1))
    meta_properties.write(str(root), MetaProperties(1, "cluster", 1, None))
    for name in ("home", "work", "tmp"):
        (place / name).mkdir()
        (place / name).chmod(0o777)
    use_local_rounds(monkeypatch, place / "work")
    monkeypatch.setenv("HOME", str(place / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "home"))
    monkeypatch.setenv("TMPDIR", str(place / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    give(place / "work")
    give(root)
    return root


class Told:
    """What the three say."""

    def __init__(self, *log_dirs: Path) -> None:
        words = (*log_dirs, "--format", "json")
        self.doctor = run_command("doctor", *words)
        self.plan = run_command("plan", *words)
        self.run = run_command("run", *words)

    @property
    def of_run(self) -> list[tuple[int, str]]:
        """Exit code and reason code: as doctor and plan foresee them, as the run ends."""
        asked = (self.doctor, self.plan)
        assert all("run_would_end" in ended.summary for ended in asked), asked
        said = [ended.summary["run_would_end"] for ended in asked]
        return [(one["exit_code"], one["reason_code"]) for one in (*said, self.run.summary)]

    @property
    def first_problem(self) -> str:
        problem: str = self.plan.summary["run_would_end"]["obstacles"][0]["problem"]
        return problem


def told(*log_dirs: Path) -> Told:
    return as_user(lambda: Told(*log_dirs))


def agreed(found: Told) -> tuple[int, str]:
    assert len({*found.of_run}) == 1, found.of_run
    is_fit = found.of_run[0][0] == 0
    grades = [check["grade"] for check in checks_of(found.doctor)]
    assert ("fail" not in grades) is is_fit, grades
    return found.of_run[0]


def checks_of(doctor: Ended) -> list[dict[str, Any]]:
    """Those that do not concern the machine."""
    document = doctor.summary
    checks = [check for log_dir in document["log_dirs"] for check in log_dir["checks"]]
    return [*checks, *document["run"]]


def test_where_nothing_is_in_the_way_a_run_is_done(data: Path) -> None:
    assert agreed(told(data)) == (0, "done")
    assert agreed(told(data)) == (0, "nothing-to-do")


LOG = f"{COMPACTED}-0/00000000000000000000.log"


@pytest.mark.parametrize(
    ("name", "mode", "ending"),
    [
        (".lock", 0o600, (3, "no-permission")),
        (".lock", 0o644, (3, "no-permission")),
        (checkpoint.CLEANER_OFFSET, 0o600, (3, "no-permission")),
        (checkpoint.CLEANER_OFFSET, 0o644, (3, "no-permission")),
        (checkpoint.LOG_START, 0o644, (3, "no-permission")),
        (checkpoint.REPLICATION, 0o600, (4, "logs-set-aside")),
        (checkpoint.REPLICATION, 0o644, (0, "done")),
        (LOG, 0o600, (4, "logs-set-aside")),
        (LOG, 0o644, (4, "logs-set-aside")),
        (LOG.replace(".log", ".index"), 0o600, (4, "logs-set-aside")),
        (LOG.replace(".log", ".timeindex"), 0o644, (4, "logs-set-aside")),
    ],
)
@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
def test_a_file_of_another_user_is_seen_before(
    data: Path, name: str, mode: int, ending: tuple[int, str]
) -> None:
    path = data / name
    if not path.exists():
        path.write_bytes(b"" if name == ".lock" else b"0\n0\n")
    os.chown(path, 0, 0)
    path.chmod(mode)
    before = state_of(data)
    found = told(data)
    assert agreed(found) == ending
    if ending[0] == 3:
        assert state_of(data) == before
        obstacles = found.plan.summary["run_would_end"]["obstacles"]
        assert [(o["path"], o["reason_code"]) for o in obstacles] == [(str(path), ending[1])]
        assert f"sudo chown --reference={data} {path}" in obstacles[0]["remedy"]
        assert found.run.summary["error"].startswith(f"{path}: ")


def test_a_directory_that_was_not_given_is_seen_before(data: Path, place: Path) -> None:
    other = place / "other"
    build(other, Shape(COMPACTED, 2))
    for root, id_ in ((data, A), (other, B)):
        meta_properties.write(str(root), MetaProperties(1, "cluster", 1, encode_uuid(id_)))
    for number in range(3):
        path = (data if number < 2 else other) / f"{COMPACTED}-{number}"
        partition_metadata.write(str(path / "partition.metadata"), PartitionMetadata(0, OTHER))
    about = topic(COMPACTED, OTHER), config("cleanup.policy", "compact", COMPACTED)
    (data / METADATA_DIR).mkdir()
    log(data / METADATA_DIR, 0, batches(0, *about, registration(1, A, B)))
    give(data)
    give(other)
    assert agreed(told(data)) == (3, "log-dirs-missing")
    found = told(other, data)
    assert agreed(found) == (0, "done")
    assert [
        c["grade"] for c in checks_of(found.doctor) if c["subject"] == "settings of topics"
    ] == [
        "ok",
        "ok",
    ]


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL])
def test_a_mount_without_locks_is_refused_with_a_remedy(
    data: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def without_locks(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "lockf", without_locks)
    before = state_of(data)
    found = told(data)
    assert agreed(found) == (3, "file-system")
    for words in (("recover", data), ("log", "roll", data, f"{COMPACTED}-0", "--yes")):
        ended = as_user(lambda words=words: run_command(*words))  # type: ignore[misc]
        assert (ended.code, ended.summary["reason_code"]) == (3, "file-system")
        assert f"{data}/.lock: cannot be locked" in ended.error
        assert "run --output DIR" in ended.error
        assert "Nothing was changed" in ended.error
    assert state_of(data) == before
    (lock,) = (c for c in checks_of(found.doctor) if c["subject"] == "lock")
    assert lock["grade"] == "fail"


def test_a_lock_file_that_cannot_be_opened_is_refused(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = os.open

    def opened(path: Any, *arguments: Any, **more: Any) -> int:
        if str(path).endswith("/.lock"):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        return plain(path, *arguments, **more)

    monkeypatch.setattr(os, "open", opened)
    assert agreed(told(data)) == (3, "file-system")


def test_a_run_beside_a_running_broker_is_foreseen_and_plan_ends_well(data: Path) -> None:
    (data / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    found = told(data)
    assert agreed(found) == (3, "unclean-shutdown")
    with other_process(data / ".lock"):
        found = told(data)
    assert agreed(found) == (3, "broker-running")
    assert (found.plan.code, found.doctor.code) == (0, 4)


def test_a_plan_that_fails_says_how_a_run_would_end_too(data: Path, place: Path) -> None:
    found = told(data, place / "nowhere")
    assert agreed(found) == (2, "wrong-usage")
    assert found.plan.code == 2


def test_a_swap_that_was_cut_short_is_no_obstacle(data: Path) -> None:
    """A run settles it first: what it comes to then is planned without writing anything."""
    for kind in ("index", "timeindex", "log"):
        path = (data / LOG).with_suffix(f".{kind}")
        path.rename(path.with_name(f"{path.name}.swap"))
    found = told(data)
    assert agreed(found) == (0, "done")
    assert [log["reason_code"] for log in found.plan.summary["not_taken"]] == ["cut-short"]


def test_a_run_needs_no_java_whatever_the_size(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_candidates", lambda *_: iter(()))
    monkeypatch.setattr(engine_choice, "SPARK_FROM_BYTES", 0)
    monkeypatch.setattr(cleaner_manager, "_engine", ENGINE_OF_RUNS)
    found = Told(data)
    assert {*found.of_run} == {(0, "done")}
    engine = found.run.summary["engine"]
    assert (engine["name"], engine["why"]) == ("local", "no Java that Spark runs on was found")
    [check] = [c for c in found.doctor.summary["machine"] if c["subject"] == "engine"]
    assert check["found"].startswith("local, ") and "there is no Java" in check["found"]
