"""Tells log directories from topics and partitions among operands, and checks --metrics FILE."""

import os
from collections.abc import Sequence

from compactor.command_line.whole_file import require_writable
from compactor.outcome.exit_codes import UsageError
from storage.file_names import parse_partition_dir
from storage.files.filesystem import is_directory

METRICS_EXTENSION = ".prom"


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


def metrics_file(path: str | None) -> str | None:
    """Where the metrics go: known by its extension, the only one that collectors look at."""
    if path is None:
        return None
    if not path.endswith(METRICS_EXTENSION):
        raise UsageError(f"--metrics {path}: a collector takes only {METRICS_EXTENSION} files")
    require_writable("--metrics", path)
    return path
