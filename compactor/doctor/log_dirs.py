"""A log directory: whose it is, whether it may be changed, its lock, its room, how it was left.

Takes no lock, and writes nothing.
"""

import os
import pwd
from collections.abc import Sequence
from functools import partial

from compactor.doctor.checks import Check, fail, ok, warn
from compactor.doctor.settings import settings_check
from compactor.high_watermarks import has_high_watermarks
from compactor.host.printable import counted, iso_time, printable, shell_word, size_text, span_text
from compactor.lock_support import why_locks_may_fail
from compactor.log_dir_lock import require_clean_shutdown, require_free
from compactor.missing_logs import START_NO_BROKER, ends_of_empty_logs, why_missing
from compactor.refusals import messages_of
from storage.errors import CorruptFileError
from storage.files import backends
from storage.files.local import LOCAL
from storage.formats import checkpoint, meta_properties
from storage.log.log_dir import LogDirListing, PartitionListing, list_log_dir

CLOCKS_DIFFER_MS = 5 * 60_000
_SHOWN = 3


def log_dir_checks(log_dir: str, now_ms: int, given: Sequence[str] = ()) -> list[Check]:
    """Look at all that concerns one log directory, which can be listed.

    given: all log directories that were; the broker's metadata log may be in another.
    """
    listing = list_log_dir(log_dir, LOCAL)
    return [
        *_missing_logs(listing),
        _identity(log_dir, listing),
        _permissions(log_dir, listing),
        _file_system(log_dir),
        _lock(log_dir),
        _shutdown(log_dir),
        _high_watermarks(log_dir),
        settings_check(listing, given or (log_dir,), now_ms),
        _room(log_dir, listing),
        _times(listing, now_ms),
    ]


def _identity(log_dir: str, listing: LogDirListing) -> Check:
    logs = counted(len(listing.partitions), "log")
    size = sum(segment.log_bytes for log in listing.partitions for segment in log.segments)
    found = f"{logs}, {size_text(size)}"
    try:
        known = meta_properties.read(log_dir, LOCAL)
    except FileNotFoundError:
        advice = "That is so of a copy of some topics. Otherwise look whether it is the right one."
        return warn("log directory", f"{found}; no meta.properties in it", advice)
    except CorruptFileError as error:
        return fail("log directory", str(error), "A broker does not start with it either.")
    return ok("log directory", f"{found}; broker {known.node_id} of cluster {known.cluster_id}")


def _missing_logs(listing: LogDirListing) -> list[Check]:
    """A check only where something is wrong: it stands first then."""
    ends = ends_of_empty_logs(listing)
    missing = [
        f"{printable(log.name)}: {problem}"
        for log in listing.partitions
        if (problem := why_missing(log, ends)) is not None
    ]
    if not missing:
        return []
    more = f" and {len(missing) - _SHOWN:,} more logs" if len(missing) > _SHOWN else ""
    advice = f"{START_NO_BROKER} Bring the files back from a backup that has them."
    return [fail("records", "; ".join(missing[:_SHOWN]) + more, advice)]


def _permissions(log_dir: str, listing: LogDirListing) -> Check:
    owner = _user(os.stat(log_dir).st_uid)
    me = _user(os.geteuid())
    paths = [log_dir, *(log.path for log in listing.partitions)]
    closed = [path for path in paths if not os.access(path, os.R_OK | os.W_OK | os.X_OK)]
    if closed:
        shown = ", ".join(printable(path) for path in closed[:_SHOWN])
        more = f" and {len(closed) - _SHOWN:,} more" if len(closed) > _SHOWN else ""
        advice = f"Run it as the owner: sudo -u {owner} compactor …"
        return fail("permissions", f"{me} may not read and write {shown}{more}", advice)
    if me == owner:
        return ok("permissions", f"{me} owns it, and may read and write every log")
    advice = f"sudo -u {owner} compactor …, so that the broker can write all that it finds."
    return warn("permissions", f"{me} may read and write every log, and {owner} owns it", advice)


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _file_system(log_dir: str) -> Check:
    mount = backends.mount_of(log_dir)
    why = why_locks_may_fail(mount, ())
    if why is not None or mount is None:
        return fail("file system", why or "of an unknown type")
    found = f"{mount.type} at {mount.mount_point}"
    if "ro" in mount.options:
        return fail("file system", f"{found}, mounted read-only", "mount -o remount,rw")
    return ok("file system", f"{found}: a lock on it keeps a broker out")


def _lock(log_dir: str) -> Check:
    held = messages_of(partial(require_free, log_dir))
    if held:
        return fail("lock", held[0], "Stop the broker, or wait for the other run to end.")
    return ok("lock", "free: no broker and no run works there")


def _shutdown(log_dir: str) -> Check:
    problems = messages_of(partial(require_clean_shutdown, log_dir))
    if problems:
        return fail("last shutdown", problems[0])
    return ok("last shutdown", "clean")


def _high_watermarks(log_dir: str) -> Check:
    if has_high_watermarks(log_dir, LOCAL):
        return ok("high watermarks", f"in {checkpoint.REPLICATION}")
    return fail(
        "high watermarks",
        f"no {checkpoint.REPLICATION}: nothing says how far the logs are replicated",
        "Copy that file from the broker's directory, too. If this copy is the only one: "
        "--assume-fully-replicated.",
    )


def _room(log_dir: str, listing: LogDirListing) -> Check:
    state = os.statvfs(log_dir)
    free = state.f_bavail * state.f_frsize
    largest = max(listing.partitions, key=_size, default=None)
    found = f"{size_text(free)} free"
    if largest is None or free >= _size(largest):
        return ok("room", found)
    name = f"{largest.topic}-{largest.partition}"
    return warn(
        "room",
        f"{found}, and the largest log, {printable(name)}, has {size_text(_size(largest))}",
        f"A log is rewritten beside the old one: compactor plan {shell_word(log_dir)} says which "
        "logs would be left out. Retention, or moving a log away, makes room.",
    )


def _size(log: PartitionListing) -> int:
    return sum(segment.log_bytes for segment in log.segments)


def _times(listing: LogDirListing, now_ms: int) -> Check:
    latest = max(
        (segment.log_mtime_ns for log in listing.partitions for segment in log.segments), default=0
    )
    ahead_ms = latest // 1_000_000 - now_ms
    if ahead_ms > CLOCKS_DIFFER_MS:
        return warn(
            "times of files",
            f"the youngest was written {span_text(ahead_ms)} after this machine's clock",
            "Set this machine's clock right (timedatectl); logs written after it are passed over.",
        )
    if not latest:
        return ok("times of files", "there are none")
    return ok("times of files", f"the youngest is of {iso_time(latest // 1_000_000)}")
