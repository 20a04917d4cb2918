"""What a command is asked and what it leaves behind: the values between the command line and it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

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
    debug: bool = False


class DumpArguments(NamedTuple):
    path: str
    format: DumpFormat


class VerifyArguments(NamedTuple):
    log_dir: str
    topic_partition: str | None
    against: str | None
    as_of: str | None
    run_report: str | None
    format: Format


class Result(NamedTuple):
    """What a command leaves behind: everything it knows, and the verdict alone."""

    document: JsonObject  # begins with the fields of the verdict
    verdict: JsonObject | None = None  # None: the document is short enough to be one


class Request(NamedTuple):
    """What the words of the command line ask for."""

    command: str
    carry_out: Callable[[], Result | None]  # None: a stream of lines that needs no verdict
    format: Format
    report: str | None
    debug: bool


class StoppedError(Exception):
    """An error that came when log directories may have been changed already."""

    def __init__(self, cause: BaseException, changed: str) -> None:
        super().__init__(str(cause))
        self.cause, self.changed = cause, changed
