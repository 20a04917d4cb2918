"""What several commands take: fields of `api.Rules` by their use, operands, conditions."""

from dataclasses import dataclass
from typing import Any

from compactor.api.options import OUTPUT, option
from compactor.command_line.command import Command, operand
from compactor.command_line.operands import directories, logs

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
