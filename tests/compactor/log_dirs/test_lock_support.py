"""Where a lock keeps a broker out, by the type of the file system."""

import subprocess
import sys
from pathlib import Path

import pytest

from compactor.errors import RefusedError
from compactor.log_dirs.lock_support import require_working_locks, why_locks_may_fail
from compactor.log_dirs.log_dir_lock import lock_log_dirs
from storage.files import backends
from storage.files.backends import LOCAL_TYPES, Mount
from storage.formats import clean_shutdown
from tests.support.private_mounts import python_with_mounts

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
    monkeypatch.setattr(
        backends, "mount_of", lambda path: mount("nfs4" if path == str(second) else "ext4")
    )
    both = [str(first), str(second)]
    refused = pytest.raises(RefusedError, match=r"b: on nfs4, .* Nothing was changed")
    with refused, lock_log_dirs(both):
        pytest.fail("it is on nfs4")
    assert not (first / ".lock").exists() and not (second / ".lock").exists()
    with lock_log_dirs(both, ["nfs4"]):
        assert (second / ".lock").exists()


def test_this_directory_is_found_where_it_is_mounted(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom compactor.log_dirs.lock_support import require_working_locks\n"
        "require_working_locks([sys.argv[1]], ())\nprint('good')\n"
    )
    done = python_with_mounts([f"-t tmpfs none {tmp_path}"], code, tmp_path)
    assert done.stdout == "good\n", done.stderr
    proc = subprocess.run(
        [sys.executable, "-c", code, "/proc/self"], capture_output=True, text=True, check=False
    )
    assert "/proc/self: on proc, mounted at /proc" in proc.stderr


def test_nothing_to_lock_is_no_problem() -> None:
    require_working_locks([], ())
