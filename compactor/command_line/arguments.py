"""The words of the command line to values; what is impossible is refused by the name of its option.

Nothing is created or changed here. Every refusal is a UsageError.
"""

import os
import re
from collections.abc import Sequence

from compactor.command_line.whole_file import require_writable
from compactor.exit_codes import UsageError
from storage.file_names import parse_partition_dir
from storage.files.filesystem import is_directory

METRICS_EXTENSION = ".prom"

LEAST_RATE = 1_000_000  # bytes a second

_DURATION = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZE = re.compile(r"(\d{1,18}) ?([kmgt]?b?)", re.ASCII | re.IGNORECASE)
_UNIT_BYTES = {"": 1, "b": 1}
_UNIT_BYTES |= {u + b: 1000**n for n, u in enumerate("kmgt", 1) for b in ("", "b")}
_MASTER = re.compile(
    r"local|local\[(\*|[1-9]\d{0,3})(,[1-9]\d?)?\]|local-cluster\[[1-9]\d*,[1-9]\d*,[1-9]\d*\]"
    r"|spark://\S+|k8s://\S+|yarn"
)


def log_dirs_and_topic(words: Sequence[str]) -> tuple[tuple[str, ...], str | None]:
    """The last of several words is a topic if it is no directory, and could not be one's path."""
    *log_dirs, last = words
    if not log_dirs or os.sep in last or is_directory(last):
        return tuple(words), None
    return tuple(log_dirs), last


def log_dirs_and_partitions(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Tell log directories from partitions among the words behind a command.

    A word is a partition where a directory before it holds one of that name, and where it is no
    directory and could not be one's path.
    """
    log_dirs: list[str] = list(words[:1])
    partitions: list[str] = []
    for word in words[1:]:
        may_be_name = os.sep not in word and word.strip() != ""
        is_held = (
            may_be_name
            and parse_partition_dir(word) is not None
            and any(is_directory(os.path.join(log_dir, word)) for log_dir in log_dirs)
        )
        is_partition = is_held or (may_be_name and not is_directory(word))
        (partitions if is_partition else log_dirs).append(word)
    return tuple(log_dirs), tuple(partitions)


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


def executor_path(text: str) -> tuple[str, str]:
    """DRIVER=EXECUTOR of `--executor-path`: a directory of this host, and its path on executors."""
    here, _, there = text.partition("=")
    if not (here.startswith("/") and there.startswith("/")) or "=" in there:
        raise UsageError(f"--executor-path {text}: expected two absolute paths, /data=/mnt/data")
    return os.path.normpath(here), os.path.normpath(there)


def metrics_file(path: str | None) -> str | None:
    """Where the metrics go: known by its extension, the only one that collectors look at."""
    if path is None:
        return None
    if not path.endswith(METRICS_EXTENSION):
        raise UsageError(f"--metrics {path}: a collector takes only {METRICS_EXTENSION} files")
    require_writable("--metrics", path)
    return path


def duration_ms(option: str, text: str | None) -> int | None:
    """A whole number of seconds, minutes, hours or days, like 7d."""
    if text is None:
        return None
    found = _DURATION.fullmatch(text.strip())
    if not found:
        raise UsageError(f"{option} {text}: expected a number with s, m, h or d behind it, like 7d")
    return int(found[1]) * _UNIT_MS[found[2]]


def rate_bytes(option: str, text: str | None) -> int | None:
    """Bytes a second, at least a million, in the units of a size: 200MB/s."""
    if text is None:
        return None
    try:
        found = size_bytes(option, text.strip().removesuffix("/s"))
    except UsageError:
        found = None
    if found is None or found < LEAST_RATE:
        raise UsageError(f"{option} {text}: expected 1MB/s or more, like 200MB/s")
    return found


def size_bytes(option: str, text: str | None) -> int | None:
    """A whole number of bytes, or of kB, MB, GB or TB (powers of ten), like 500GB."""
    if text is None:
        return None
    found = _SIZE.fullmatch(text.strip())
    if not found:
        problem = "expected a number of bytes, or with kB, MB, GB or TB behind it, like 500GB"
        raise UsageError(f"{option} {text}: {problem}")
    return int(found[1]) * _UNIT_BYTES[found[2].lower()]
