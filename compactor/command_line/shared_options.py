"""What several commands take: operands, fields of `api.Rules` by their use, conditions.

A shell's completion offers log directories, topics and partitions. click asks for it by variables
of the environment, which its scripts set; it knows commands and options by itself. Nothing but
names of directories is read.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any

from compactor.command_line.command import Command, operand
from compactor.errors import UsageError
from compactor.settings.options import OUTPUT, option
from compactor.settings.rules import TaskOptions, option_names
from storage.file_names import parse_partition_dir
from storage.files.local import LOCAL


def log_dirs_and_topic(words: Sequence[str]) -> tuple[tuple[str, ...], str | None]:
    """Split words into log directories and a topic.

    The last of several words is a topic if it is no directory, and could not be one's path.
    """
    *log_dirs, last = words
    if not log_dirs or os.sep in last or LOCAL.is_directory(last):
        return tuple(words), None
    return tuple(log_dirs), last


def log_dirs_and_partitions(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split words into log directories and partitions.

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
            and any(LOCAL.is_directory(os.path.join(log_dir, word)) for log_dir in log_dirs)
        )
        is_partition = is_held or (may_be_name and not LOCAL.is_directory(word))
        (partitions if is_partition else log_dirs).append(word)
    return tuple(log_dirs), tuple(partitions)


VARIABLE = "_COMPACTOR_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


def directories(_: Sequence[str], incomplete: str) -> list[str]:
    """Return the directories that begin like that, each with a slash at its end."""
    folder, begin = os.path.split(incomplete)
    return sorted(
        os.path.join(folder, name) + os.sep
        for name in _names_in(folder or os.curdir)
        if name.startswith(begin) and LOCAL.is_directory(os.path.join(folder, name))
    )


def logs(typed: Sequence[str], incomplete: str) -> list[str]:
    """Return the logs of the directories that stand before."""
    return sorted({name for name in _logs_in(typed) if name.startswith(incomplete)})


def directories_or_logs(typed: Sequence[str], incomplete: str) -> list[str]:
    """Return logs, too, once a log directory stands before."""
    return logs(typed, incomplete) + directories(typed, incomplete)


def directories_or_topics(typed: Sequence[str], incomplete: str) -> list[str]:
    """Return topics, too, once a log directory stands before."""
    keys = map(parse_partition_dir, _logs_in(typed))
    topics = {key[0] for key in keys if key is not None and key[0].startswith(incomplete)}
    return sorted(topics) + directories(typed, incomplete)


def _logs_in(typed: Sequence[str]) -> Iterator[str]:
    for place in filter(LOCAL.is_directory, typed):
        yield from (name for name in _names_in(place) if parse_partition_dir(name))


def _names_in(folder: str) -> list[str]:
    try:
        return [*chain(*LOCAL.list_names(folder))]
    except OSError:
        return []


LOG_DIRS = "Log directories of a broker (log.dirs), or of several brokers"
LOG_DIR_MISSING = "the broker's log directory, as log.dirs in its server.properties names it"
PARTITIONS = "LOG_DIR... [TOPIC-PARTITION]..."
PARTITIONS_HELP = (
    "Log directories. A partition of one before it, like orders-7, limits the command to it"
)
LOG_MISSING = "the log, like orders-0"

CONFIGURATION = (
    *("topic_configs", "trust_topic_configs", "config", "settings", "metadata", "no_metadata"),
    *("server_properties", "kafka"),
)
SELECTION = (
    *("include", "exclude", "as_of", "any_clock", "all_log_dirs_given"),
    *("assume_fully_replicated", "order", "max_logs", "max_bytes", "max_minutes"),
)
OF_TASKS = ("work_dir", "engine", "spark_from", "master", "executor_paths")
OF_ONE_LOG = ("topic_configs", "config", "settings", "metadata")


def fail_if() -> Any:
    """Return the field of conditions on how a command ends."""
    return option(
        (),
        "CONDITION",
        "End with exit code 5 if this holds, like 'dirty_ratio > 0.8 and "
        "dirty_bytes > 1e9'. Repeatable: any of them",
        OUTPUT,
        is_repeated=True,
    )


def require_tasks(options: TaskOptions, has_tasks: bool, what_has: str) -> None:
    """Raise UsageError where an option says how tasks run, and the command has none."""
    for each in fields(options):
        value = getattr(options, each.name)
        if value != each.default and not has_tasks:
            name = option_names()[each.name]
            raise UsageError(f"{name}: only with {what_has}, which has tasks")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCommand(Command):
    """One log."""

    log_dir: str = operand(
        "LOG_DIR",
        "Log directory of a stopped broker (log.dirs)",
        missing=LOG_DIR_MISSING,
        offered=directories,
    )
    topic_partition: str = operand(
        "TOPIC-PARTITION", "One log in it, like orders-0", missing=LOG_MISSING, offered=logs
    )
