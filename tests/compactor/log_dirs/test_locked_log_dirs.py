"""Kafka's lock against another process, a stopping broker, an unclean shutdown, patience."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compactor.errors import RefusedError
from compactor.log_dirs.locked_log_dirs import (
    Patience,
    lock_log_dirs,
    require_working_locks,
    why_locks_may_fail,
)
from compactor.log_dirs.set_aside_memory import RememberedLogs
from compactor.originals.originals_keeper import open_keeper
from compactor.outcome.round_report import LogStatus
from compactor.planning.space import space_of, with_room
from compactor.reason_codes import ReasonCode
from compactor.recovery.log_dir_recovery import LoadRules, recover_log_dir
from compactor.verification.verify import verify
from storage.files.files import LOCAL_TYPES, Mount
from storage.files.local import LocalFiles
from storage.formats import clean_shutdown
from tests.compactor.plan_logs import COMPACT, NOW_MS, build, plan_log_dirs
from tests.support.local_round import LocalRound, NoProgress
from tests.support.lock_holding import holding
from tests.support.private_mounts import python_with_mounts


@contextmanager
def other_process(path: Path) -> Iterator[str]:
    """A process that takes the lock as a broker does; what it said of it."""
    command = holding(path)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def log_dir(root: Path, name: str = "logs") -> Path:
    path = root / name
    path.mkdir()
    clean_shutdown.write(str(path))
    return path


def test_a_log_directory_in_use_is_refused(tmp_path: Path) -> None:
    path = log_dir(tmp_path) / ".lock"
    with other_process(path) as said:
        assert said == "locked"
        locked = pytest.raises(RefusedError, match=r"\.lock: locked: .* Nothing was changed")
        with locked, lock_log_dirs([str(path.parent)]):
            pytest.fail("it is locked")
    assert path.exists()  # it is the other's
    with lock_log_dirs([str(path.parent)]):
        pass


def test_another_process_is_refused_as_long_as_we_hold_it(tmp_path: Path) -> None:
    path = log_dir(tmp_path) / ".lock"
    with lock_log_dirs([str(path.parent)]), other_process(path) as said:
        assert said == "refused"
    assert not path.exists()  # we made it, as a broker that stops removes it
    with other_process(path) as said:
        assert said == "locked"


@pytest.mark.parametrize("is_there", [True, False])
def test_a_second_owner_in_this_process_is_refused_and_takes_nothing(
    tmp_path: Path, is_there: bool
) -> None:
    """The system would give it the lock, and to close the file would take it from the first."""
    path = log_dir(tmp_path) / ".lock"
    if is_there:
        path.touch()
    with lock_log_dirs([str(path.parent)]):
        own = pytest.raises(RefusedError, match=r"\.lock: locked: this process works .* already")
        with own, lock_log_dirs([str(path.parent)]):
            pytest.fail("it is locked")
        with other_process(path) as said:
            assert said == "refused"
    assert path.exists() is is_there
    with lock_log_dirs([str(path.parent)]), other_process(path) as said:
        assert said == "refused"


def test_a_lock_file_that_was_there_stays(tmp_path: Path) -> None:
    path = log_dir(tmp_path) / ".lock"
    path.touch()
    with lock_log_dirs([str(path.parent)]):
        pass
    assert path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_lock_file_of_root_does_not_keep_the_broker_out(tmp_path: Path) -> None:
    """A run that is killed leaves it; a broker that cannot open it takes the directory offline."""
    path = log_dir(tmp_path) / ".lock"
    os.chown(path.parent, 1234, 4321)
    with lock_log_dirs([str(path.parent)]):
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)
    path.touch()
    os.chown(path, 77, 88)
    with lock_log_dirs([str(path.parent)]):
        assert (path.stat().st_uid, path.stat().st_gid) == (77, 88)


@pytest.mark.parametrize(
    ("code", "helps"),
    [
        (errno.ENOSPC, "Make room at "),
        (errno.EDQUOT, "Make room at "),
        (errno.EROFS, "so that it can be written"),
        (errno.EIO, "Look at the disk of "),
        (errno.EACCES, "Look at "),
    ],
)
def test_what_helps_is_by_the_error_and_not_always_the_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, helps: str
) -> None:
    path = log_dir(tmp_path)
    before = os.open

    def full(name: str, flags: int, *more: int, **options: int) -> int:
        if str(name).endswith(".lock") and flags & os.O_CREAT:
            raise OSError(code, os.strerror(code), name)
        return before(name, flags, *more, **options)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(RefusedError) as refused, lock_log_dirs([str(path)]):
        pass
    assert helps in str(refused.value.remedy)
    assert ("owner" in str(refused.value.remedy)) is (code == errno.EACCES)


def test_a_lock_that_a_dead_process_left_does_not_block(tmp_path: Path) -> None:
    """F-15.1: a broker that is killed leaves the file; the lock on it went with its process."""
    path = log_dir(tmp_path) / ".lock"
    command = holding(path)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(RefusedError), lock_log_dirs([str(path.parent)]):
            pytest.fail("it is locked")
        process.kill()
    assert process.returncode == -signal.SIGKILL and path.exists()
    with lock_log_dirs([str(path.parent)]), other_process(path) as said:
        assert said == "refused"


def test_a_lock_is_met_through_a_link_to_its_directory(tmp_path: Path) -> None:
    path, link = log_dir(tmp_path) / ".lock", tmp_path / "link"
    link.symlink_to(path.parent)
    refused = pytest.raises(RefusedError, match=r"\.lock: locked")
    with other_process(link / ".lock"), refused, lock_log_dirs([str(path.parent)]):
        pytest.fail("it is locked through the link")
    with other_process(path), refused, lock_log_dirs([str(link)]):
        pytest.fail("it is locked, and the link leads there")
    with lock_log_dirs([str(link)]), other_process(path) as said:
        assert said == "refused"


def test_an_error_inside_gives_the_lock_back(tmp_path: Path) -> None:
    path = log_dir(tmp_path) / ".lock"
    with pytest.raises(ZeroDivisionError), lock_log_dirs([str(path.parent)]):
        _ = 1 // 0
    assert not path.exists()


def test_without_a_clean_shutdown_it_is_refused_and_nothing_stays(tmp_path: Path) -> None:
    first, second = log_dir(tmp_path, "a"), tmp_path / "b"
    second.mkdir()
    unclean = pytest.raises(RefusedError, match=r"b: no \.kafka_cleanshutdown: .* was changed")
    with unclean, lock_log_dirs([str(first), str(second)]):
        pytest.fail("it was not shut down cleanly")
    assert not (first / ".lock").exists() and not (second / ".lock").exists()
    with other_process(first / ".lock") as said:
        assert said == "locked"


def test_if_one_of_several_is_locked_none_is_held(tmp_path: Path) -> None:
    first, second = log_dir(tmp_path, "a"), log_dir(tmp_path, "b")
    with other_process(second / ".lock"):
        with pytest.raises(RefusedError), lock_log_dirs([str(first), str(second)]):
            pytest.fail("one is locked")
        with other_process(first / ".lock") as said:
            assert said == "locked"


@pytest.mark.parametrize("and_made_anew", [False, True])
def test_a_file_that_is_unlinked_meanwhile_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, and_made_anew: bool
) -> None:
    """A broker that stops removes it between our opening and our locking."""
    path = log_dir(tmp_path) / ".lock"
    path.touch()
    lockf = fcntl.lockf

    def remove_first(descriptor: int, operation: int) -> None:
        if not operation & fcntl.LOCK_EX:  # it looks whether there are locks at all
            return
        path.unlink()
        if and_made_anew:
            path.touch()
        lockf(descriptor, operation)

    monkeypatch.setattr(fcntl, "lockf", remove_first)
    stopping = pytest.raises(RefusedError, match="a broker is stopping")
    with stopping, lock_log_dirs([str(path.parent)]):
        pytest.fail("it is not the file that a broker looks at")
    assert path.exists() is and_made_anew


def test_nothing_that_is_done_meanwhile_gives_the_lock_away(
    local: LocalRound, tmp_path: Path
) -> None:
    """Closing any descriptor of the file would, without a word: so no other one is ever opened."""
    paths = [build(tmp_path / "logs")]

    def assert_held() -> None:
        with other_process(tmp_path / "logs" / ".lock") as said:
            assert said == "refused"

    with lock_log_dirs(paths):
        remembered = RememberedLogs(paths)
        (tmp_path / "logs" / clean_shutdown.CLEAN_SHUTDOWN).unlink()
        recover_log_dir(paths[0], LoadRules(COMPACT, NOW_MS))
        assert_held()
        clean_shutdown.write(paths[0])
        plan = plan_log_dirs(paths, COMPACT, NOW_MS)
        plan = with_room(plan, space_of(plan.logs, str(tmp_path), str(tmp_path)))
        local.originals = open_keeper(str(tmp_path / "originals"), "run", NOW_MS, plan)
        report = local.run(plan)
        local.originals.close()
        remembered.update(report.logs, NOW_MS)
        assert [log.status for log in report.logs] == [LogStatus.CLEANED]
        assert_held()
        assert verify([paths[0]], (), NoProgress()).findings == []
        assert_held()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    path = log_dir(tmp_path) / ".lock"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RefusedError, match=r"\.lock"), lock_log_dirs([str(path.parent)]):
        pytest.fail("it is a link")
    assert not (tmp_path / "elsewhere").exists()


def test_nothing_to_lock_is_no_problem() -> None:
    with lock_log_dirs([]):
        pass


NETWORK = [
    "nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "glusterfs", "lustre", "afs", "gfs2",
    "ocfs2", "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuseblk", "vboxsf", "gpfs", "new",
]  # fmt: skip


def mount(kind: str, *options: str) -> Mount:
    return Mount("/data", kind, frozenset(options))


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "f2fs"])
def test_a_local_file_system_is_good(kind: str) -> None:
    assert why_locks_may_fail(mount(kind, "rw"), ()) is None


@pytest.mark.parametrize("kind", NETWORK)
def test_another_one_is_refused_until_it_is_named(kind: str) -> None:
    reason = why_locks_may_fail(mount(kind, "rw"), ("nfs3", "fuse"))
    assert reason is not None
    assert reason.startswith(f"on {kind}, mounted at /data, where a lock may not exclude a broker")
    assert f"--allow-file-system {kind} if" in reason
    assert why_locks_may_fail(mount(kind, "rw"), ("zfs", kind)) is None


def test_no_network_file_system_is_taken_for_a_local_one() -> None:
    assert LOCAL_TYPES.isdisjoint(NETWORK)


@pytest.mark.parametrize("option", ["nolock", "local_lock=posix", "local_lock=all"])
def test_a_mount_that_keeps_its_locks_to_itself_is_recognised(option: str) -> None:
    """nfs(5)."""
    reason = why_locks_may_fail(mount("nfs", "rw", option), ())
    assert (
        reason is not None and f"the mount option {option} hides locks from other hosts" in reason
    )


def test_a_system_that_does_not_tell_is_refused() -> None:
    reason = why_locks_may_fail(None, ())
    assert reason is not None and "--allow-file-system unknown" in reason
    assert why_locks_may_fail(None, ("unknown",)) is None


def test_a_directory_on_a_network_file_system_is_not_even_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for path in (first, second):
        path.mkdir()
        clean_shutdown.write(str(path))
    mounts = staticmethod(lambda path: mount("nfs4" if path == str(second) else "ext4"))
    monkeypatch.setattr(LocalFiles, "mount_of", mounts)
    both = [str(first), str(second)]
    refused = pytest.raises(RefusedError, match=r"b: on nfs4, .* Nothing was changed")
    with refused, lock_log_dirs(both):
        pytest.fail("it is on nfs4")
    assert not (first / ".lock").exists() and not (second / ".lock").exists()
    with lock_log_dirs(both, ["nfs4"]):
        assert (second / ".lock").exists()


def test_this_directory_is_found_where_it_is_mounted(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom compactor.log_dirs.locked_log_dirs import require_working_locks\n"
        "require_working_locks([sys.argv[1]], ())\nprint('good')\n"
    )
    done = python_with_mounts([f"-t tmpfs none {tmp_path}"], code, tmp_path)
    assert done.stdout == "good\n", done.stderr
    proc = subprocess.run(
        [sys.executable, "-c", code, "/proc/self"], capture_output=True, text=True, check=False
    )
    assert "/proc/self: on proc, mounted at /proc" in proc.stderr


def test_no_directory_to_check_is_no_problem() -> None:
    require_working_locks([], ())


# patience with a lock that another process holds: run --wait


@contextmanager
def held(path: Path) -> "Iterator[subprocess.Popen[str]]":
    """The lock of a log directory, by another process until its input is closed."""
    words = holding(path / ".lock")
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "locked\n"
        yield process
        process.communicate()


def test_the_lock_is_taken_as_soon_as_it_is_free(tmp_path: Path) -> None:
    path, told, is_let_go = log_dir(tmp_path), list[str](), threading.Event()
    with held(path) as holder:
        assert holder.stdin is not None
        into_holder = holder.stdin

        def let_go() -> None:
            is_let_go.set()
            into_holder.close()

        def tell(line: str) -> None:
            told.append(line)
            threading.Timer(1.0, let_go).start()

        began = time.monotonic()
        with lock_log_dirs([str(path)], patience=Patience(60, tell)):
            assert is_let_go.is_set() and time.monotonic() - began < 50
        holder.stdin = None
    (line,) = told
    assert line.startswith("Waiting up to 60 s: ") and f"process {holder.pid}" in line


def test_it_is_a_refusal_once_the_time_is_over(tmp_path: Path) -> None:
    path = log_dir(tmp_path)
    with held(path), pytest.raises(RefusedError) as raised:
        began = time.monotonic()
        with lock_log_dirs([str(path)], patience=Patience(1, lambda _: None)):
            raise AssertionError
    assert time.monotonic() - began >= 1
    assert raised.value.reason_code is ReasonCode.LOCK_HELD


def test_who_waits_holds_none_of_several(tmp_path: Path) -> None:
    """Two runs that name their directories the other way round would never end otherwise."""
    first, second = log_dir(tmp_path, "a"), log_dir(tmp_path, "b")
    found = list[str]()

    def look(_: str) -> None:
        words = holding(first / ".lock")
        looked = subprocess.run(words, input="", capture_output=True, text=True, check=True)
        found.append(looked.stdout)

    with held(second), pytest.raises(RefusedError):
        lock_log_dirs([str(first), str(second)], patience=Patience(0.2, look)).__enter__()
    assert found == ["locked\n"]


def test_only_a_held_lock_is_worth_waiting_for(tmp_path: Path) -> None:
    path, told = log_dir(tmp_path), list[str]()
    (path / ".kafka_cleanshutdown").unlink()
    with pytest.raises(RefusedError, match="did not stop cleanly"):
        lock_log_dirs([str(path)], patience=Patience(60, told.append)).__enter__()
    assert not told
