"""What a command is asked and what it leaves behind: the values between the command line and it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from compactor import api
from compactor.command_line import arguments
from compactor.views.report_json import JsonObject


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"


class DumpFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class OnCorrupt(StrEnum):
    SET_ASIDE = "set-aside"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundArguments:
    """The words of `plan`, `run` and `recover`, as they were given."""

    log_dirs: tuple[str, ...]
    dry_run: bool = False
    topic_configs: str | None = None
    config: str | None = None
    settings: tuple[str, ...] = ()
    include: str | None = None
    exclude: str | None = None
    as_of: str | None = None
    any_clock: bool = False
    assume_fully_replicated: bool = False
    work_dir: str | None = None
    master: str | None = None
    map_capacity: int | None = None
    on_corrupt: OnCorrupt = OnCorrupt.SET_ASIDE
    retry: bool = False
    drop_null_keys: bool = False
    allowed_file_systems: tuple[str, ...] = ()
    keep_originals: str | None = None
    keep_for: str | None = None
    recover_first: bool = False
    format: Format = Format.TABLE


def rules_of(wanted: RoundArguments) -> api.Rules:
    """By what a round goes, as these words say it."""
    return api.Rules(
        config=wanted.config,
        topic_configs=wanted.topic_configs,
        settings=dict(arguments.setting(text) for text in wanted.settings),
        include=wanted.include,
        exclude=wanted.exclude,
        as_of=wanted.as_of,
        any_clock=wanted.any_clock,
        assume_fully_replicated=wanted.assume_fully_replicated,
    )


class ExplainArguments(NamedTuple):
    words: RoundArguments
    topic_partition: str


class UndoArguments(NamedTuple):
    run_dir: str
    discard: bool
    format: Format
    allowed_file_systems: tuple[str, ...]


class DumpArguments(NamedTuple):
    path: str
    format: DumpFormat


class ReplayArguments(NamedTuple):
    script: str
    directory: str


class VerifyArguments(NamedTuple):
    log_dir: str
    topic_partition: str | None
    against: str | None
    as_of: str | None
    run_report: str | None
    format: Format


class Result(NamedTuple):
    """What a command leaves behind: everything it knows, and the summary alone."""

    document: JsonObject  # begins with the fields of the summary
    summary: JsonObject | None = None  # None: the document is short enough to be one


class Request(NamedTuple):
    """What the words of the command line ask for."""

    command: str
    carry_out: Callable[[], Result | None]  # None: a stream of lines that needs no summary
    format: Format
    report: str | None
    debug: bool
