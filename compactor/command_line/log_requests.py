"""What a command of `compactor log` is asked."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from compactor import api
from compactor.command_line.requests import (
    ConfigurationArguments,
    Format,
    rules_of_settings,
)


class LogArguments(NamedTuple):
    """One log, and the settings of its topic."""

    log_dir: str
    topic_partition: str
    topic_configs: str | None = None
    config: str | None = None
    settings: tuple[str, ...] = ()
    metadata: str | None = None

    @property
    def rules(self) -> api.Rules:
        given = ConfigurationArguments(
            topic_configs=self.topic_configs,
            config=self.config,
            settings=self.settings,
            metadata=self.metadata,
        )
        return rules_of_settings(given)


class OffsetsArguments(NamedTuple):
    log: LogArguments
    at: tuple[str, ...]
    format: Format


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedArguments:
    """Which log is changed, how that is agreed to, and how it is shown."""

    log: LogArguments
    only_replica: bool = False
    yes: bool
    dry_run: bool
    recover_first: bool = False
    allowed_file_systems: tuple[str, ...]
    format: Format
    debug: bool
    reports: tuple[str, ...] = ()


# a change of one log: by its log directory, its name, and how it is agreed to
ChangeCall = Callable[[str, str, "api.ChangeOptions"], "api.Outcome"]


class ReadFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    VALUES = "values"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadArguments:
    """Which records, and how they are shown."""

    log: LogArguments
    first: str
    end: str | None
    isolation: str
    max_bytes: int | None
    limit: int | None
    key: str | None
    keys: str
    values: str
    format: ReadFormat
    output: str | None
    follow: bool
