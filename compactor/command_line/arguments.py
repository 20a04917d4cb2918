"""The words of the command line to values; what is impossible is refused by the name of its option.

Nothing is created or changed here. Every refusal is a UsageError, but for a LOG_DIR on a backend
without a stated promise.
"""

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime

from compactor.command_line.own_places import PROBLEM, log_dir_around, require_elsewhere
from compactor.exit_codes import UsageError
from compactor.originals.kept_manifest import DISCARDED_FILE, RUN_FILE
from storage.file_names import LOG, parse_partition_dir
from storage.files.filesystem import exists, is_directory, require_in_place
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.meta_properties import META_PROPERTIES
from storage.formats.partition_metadata import PARTITION_METADATA

REPORT_EXTENSIONS = (".json",)
MAX_TIME_MS = 253_402_300_799_999  # the last millisecond of the year 9999

_DURATION = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PARTITION_FILES = (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA)
_MASTER = re.compile(
    r"local|local\[(\*|[1-9]\d{0,3})(,[1-9]\d?)?\]|local-cluster\[[1-9]\d*,[1-9]\d*,[1-9]\d*\]"
    r"|spark://\S+|k8s://\S+|yarn"
)


def log_dirs(paths: Sequence[str], to_write: bool) -> tuple[str, ...]:
    """Local paths of the log directories, each known to be one in which this user may work.

    And in which nothing of a command's own would come to lie.
    """
    found = tuple(require_in_place(path) for path in paths)
    for path in found:
        _check_log_dir(path, to_write)
    by_place: dict[tuple[int, int], str] = {}
    for path in found:
        place = os.stat(path)  # not by name: links, and mounts of one directory at two places
        first = by_place.setdefault((place.st_dev, place.st_ino), path)
        if first is not path:
            raise UsageError(f"LOG_DIR {path}: given twice (also as {first})")
    require_elsewhere(os.environ, found)
    return found


def as_of_ms(text: str | None) -> int | None:
    """Epoch milliseconds of `--as-of`: such a number, or ISO 8601, in UTC unless it has a zone."""
    if text is None:
        return None
    time_ms = _time_ms(text.strip())
    if time_ms is None:
        problem = "expected epoch milliseconds or ISO 8601, like 2026-11-20T12:00:00Z"
        raise UsageError(f"--as-of {text}: {problem}")
    if not 0 <= time_ms <= MAX_TIME_MS:
        raise UsageError(f"--as-of {text}: outside of the years 1970 to 9999")
    return time_ms


def setting(text: str) -> tuple[str, str]:
    """NAME=VALUE of `--set`."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"--set {text}: expected NAME=VALUE, like delete.retention.ms=3600000")
    return name.strip(), value.strip()


def master(text: str | None) -> str | None:
    """A Spark master URL of a known form."""
    if text is not None and not _MASTER.fullmatch(text):
        expected = "expected local[N], local[*], spark://HOST:PORT, k8s://URL or yarn"
        raise UsageError(f"--master {text}: {expected}")
    return text


def report_file(path: str | None) -> str | None:
    """Where the report goes: known by its extension, in a directory that can be written to."""
    if path is None:
        return None
    extension = os.path.splitext(path)[1].lower()
    if extension not in REPORT_EXTENSIONS:
        expected = ", ".join(REPORT_EXTENSIONS)
        raise UsageError(f"--report {path}: unknown extension {extension!r}, expected {expected}")
    folder = os.path.dirname(os.path.abspath(path))
    if not is_directory(folder):
        raise UsageError(f"--report {path}: there is no directory {folder}")
    if is_directory(path):
        raise UsageError(f"--report {path}: is a directory")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"--report {path}: no permission to write in {folder}")
    return path


def work_dir(path: str | None, in_log_dirs: Sequence[str]) -> str | None:
    """A place for the run's own files, never in a log directory: no broker would start (F-1.4)."""
    if path is None:
        return None
    if "://" in path and not path.startswith("file://"):
        raise UsageError(f"--work-dir {path}: expected a path that driver and executors all reach")
    return _own_directory("--work-dir", path, in_log_dirs)


def keep_originals(path: str | None, in_log_dirs: Sequence[str]) -> str | None:
    """A place for what a run replaces; never in a log directory either."""
    return None if path is None else _own_directory("--keep-originals", path, in_log_dirs)


def duration_ms(option: str, text: str | None) -> int | None:
    """A whole number of seconds, minutes, hours or days, like 7d."""
    if text is None:
        return None
    found = _DURATION.fullmatch(text.strip())
    if not found:
        raise UsageError(f"{option} {text}: expected a number with s, m, h or d behind it, like 7d")
    return int(found[1]) * _UNIT_MS[found[2]]


def kept_run(path: str, to_discard: bool = False) -> str:
    """The directory in which a run has kept its originals. to_discard: that may have begun."""
    local = require_in_place(path)
    try:
        names = os.listdir(local)
    except OSError as error:
        raise UsageError(f"RUN_DIR {path}: {error.strerror}") from error
    if RUN_FILE not in names and not (to_discard and DISCARDED_FILE in names):
        problem = f"no {RUN_FILE} in it; give the run's own, DIR/RUN_ID of --keep-originals DIR"
        raise UsageError(f"RUN_DIR {path}: {problem}")
    return local


def _own_directory(option: str, path: str, in_log_dirs: Sequence[str]) -> str:
    local = require_in_place(path)
    if exists(local) and not is_directory(local):
        raise UsageError(f"{option} {path}: is not a directory")
    found = log_dir_around(local, in_log_dirs)
    if found is not None:
        raise UsageError(f"{option} {path}: inside of log directory {found}; {PROBLEM}")
    existing = _nearest_existing(local)
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UsageError(f"{option} {path}: no permission to write in {existing}")
    return local


def _check_log_dir(path: str, to_write: bool) -> None:
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries]
    except OSError as error:
        raise UsageError(f"LOG_DIR {path}: {error.strerror}") from error
    if not os.access(path, os.X_OK):
        raise UsageError(f"LOG_DIR {path}: Permission denied")
    if META_PROPERTIES not in names and not any(_is_partition(path, name) for name in names):
        raise UsageError(f"LOG_DIR {path}: {_why_not_log_dir(path, names)}")
    if to_write and not os.access(path, os.W_OK | os.X_OK):
        problem = "no permission to write; --dry-run and plan only read"
        raise UsageError(f"LOG_DIR {path}: {problem}")


def _is_partition(path: str, name: str) -> bool:
    """Whether a name is a partition's, and something in it is a log's: `/etc` has `X11-6` too."""
    if parse_partition_dir(name) is None:
        return False
    try:
        with os.scandir(os.path.join(path, name)) as entries:
            return any(e.name.endswith(LOG) or e.name in _PARTITION_FILES for e in entries)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False


def _why_not_log_dir(path: str, names: list[str]) -> str:
    if any(name.endswith(LOG) for name in names) and parse_partition_dir(os.path.basename(path)):
        return f"is a partition directory; give the log directory, {os.path.dirname(path)}"
    return f"not a log directory: no {META_PROPERTIES}, and nothing named TOPIC-PARTITION in it"


def _time_ms(text: str) -> int | None:
    if re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    since_epoch = (time if time.tzinfo else time.replace(tzinfo=UTC)) - datetime(
        1970, 1, 1, tzinfo=UTC
    )
    return round(since_epoch.total_seconds() * 1000)


def _nearest_existing(path: str) -> str:
    while not exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path
