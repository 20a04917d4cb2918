"""Whether a lock in a log directory is seen by a broker: known by the type of the file system.

On a local file system the kernel holds POSIX locks, and whoever can reach the directory asks the
same kernel. On a network file system another host can, and whether it sees the lock depends on
servers, versions and mount options; on one made by a program, on the program. What is not known to
be local is refused until the operator, who knows, names its type.
"""

from collections.abc import Collection, Iterable

from compactor.errors import RefusedError
from compactor.reason_codes import ReasonCode
from storage.files import backends
from storage.files.backends import LOCAL_TYPES, Mount

UNKNOWN_TYPE = "unknown"  # where the system does not say
_HOST_ONLY = frozenset(("nolock", "local_lock=all", "local_lock=posix", "nobrl", "localflocks"))


def require_working_locks(log_dirs: Iterable[str], allowed_types: Collection[str]) -> None:
    """Raise RefusedError for the first directory where a lock may not exclude a broker.

    allowed_types: file systems that the operator has named, beside LOCAL_TYPES.
    """
    for log_dir in log_dirs:
        reason = why_locks_may_fail(backends.mount_of(log_dir), allowed_types)
        if reason is not None:
            problem = f"{log_dir}: {reason}. Nothing was changed"
            raise RefusedError(problem, ReasonCode.FILE_SYSTEM, path=log_dir)


def why_locks_may_fail(mount: Mount | None, allowed_types: Collection[str]) -> str | None:
    """The reason in words; None where the lock is good. mount: None where it is not known."""
    kind = mount.type if mount else UNKNOWN_TYPE
    if kind in LOCAL_TYPES or kind in allowed_types:
        return None
    where = f"on {kind}, mounted at {mount.mount_point}" if mount else "on an unknown file system"
    own = sorted(mount.options & _HOST_ONLY) if mount else []
    doubt = (
        f"where the mount option {own[0]} hides locks from other hosts"
        if own
        else "where a lock may not exclude a broker on another host"
    )
    allow = f"--allow-file-system {kind} if no broker can be started on it"
    return f"{where}, {doubt}; give {allow}"
