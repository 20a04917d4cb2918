"""What a command is asked and what it leaves behind: the values between the command line and it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from compactor import api
from compactor.command_line import arguments
from compactor.views.report_json import JsonObject

if TYPE_CHECKING:
    from compactor.api import CleaningReport, RoundPlan


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"


class DumpFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class OnCorrupt(StrEnum):
    SET_ASIDE = "set-aside"
    FAIL = "fail"


class ConfigurationArguments(NamedTuple):
    """Where the settings of topics come from, as it was given."""

    topic_configs: str | None = None
    config: str | None = None
    settings: tuple[str, ...] = ()
    metadata: str | None = None
    no_metadata: bool = False
    server_properties: str | None = None
    trust_topic_configs: tuple[str, ...] = ()
    kafka: str | None = None


NOTHING_GIVEN = ConfigurationArguments()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundArguments:
    """The words of `plan`, `run` and `recover`, as they were given."""

    log_dirs: tuple[str, ...]
    configuration: ConfigurationArguments
    all_log_dirs_given: bool = False
    dry_run: bool = False
    include: str | None = None
    exclude: str | None = None
    as_of: str | None = None
    any_clock: bool = False
    assume_fully_replicated: bool = False
    work_dir: str | None = None
    master: str | None = None
    executor_paths: tuple[str, ...] = ()  # DRIVER=EXECUTOR
    on_corrupt: OnCorrupt = OnCorrupt.SET_ASIDE
    wait_seconds: int = 0
    retry: bool = False
    exact_bytes: bool = False
    drop_null_keys: bool = False
    allowed_file_systems: tuple[str, ...] = ()
    keep_originals: str | None = None
    keep_for: str | None = None
    output: tuple[str, ...] = ()
    compacted_only: bool = False
    link: bool = False
    io_limit: str | None = None
    nice: int | None = None
    recover_first: bool = False
    as_kafka: bool = False
    fail_if: tuple[str, ...] = ()
    order: api.Order = api.Order.GAIN
    max_logs: int | None = None
    max_bytes: str | None = None
    max_minutes: float | None = None
    sample_bytes: str | None = None  # None: no sample
    saved_plan: str | None = None  # of a plan where it is saved, of a run what it carries out
    top: int | None = None  # rows of a plan's list; None: everything
    format: Format = Format.TABLE


def rules_of(wanted: RoundArguments) -> api.Rules:
    """By what a round goes, as these words say it."""
    return replace(
        rules_of_settings(wanted.configuration),
        all_log_dirs_given=wanted.all_log_dirs_given,
        include=wanted.include,
        exclude=wanted.exclude,
        as_of=wanted.as_of,
        any_clock=wanted.any_clock,
        assume_fully_replicated=wanted.assume_fully_replicated,
        max_logs=wanted.max_logs,
        max_bytes=arguments.size_bytes("--max-bytes", wanted.max_bytes),
        max_minutes=wanted.max_minutes,
        order=wanted.order,
    )


def rules_of_settings(given: ConfigurationArguments) -> api.Rules:
    """The settings alone."""
    return api.Rules(
        config=given.config,
        topic_configs=given.topic_configs,
        settings=dict(arguments.setting(text) for text in given.settings),
        metadata=given.metadata,
        no_metadata=given.no_metadata,
        server_properties=given.server_properties,
        trust_topic_configs=given.trust_topic_configs,
        kafka=given.kafka,
    )


class ConfigsArguments(NamedTuple):
    log_dirs: tuple[str, ...]
    topic: str | None
    configuration: ConfigurationArguments
    format: Format


class InspectArguments(NamedTuple):
    log_dirs: tuple[str, ...]
    partitions: tuple[str, ...]
    configuration: ConfigurationArguments
    sample: bool
    top: int
    as_of: str | None
    work_dir: str | None
    master: str | None
    executor_paths: tuple[str, ...]
    format: Format


class DoctorArguments(NamedTuple):
    log_dirs: tuple[str, ...]
    start_spark: bool
    format: Format


class ExplainArguments(NamedTuple):
    words: RoundArguments
    topic_partition: str


class ReportArguments(NamedTuple):
    paths: tuple[str, ...]
    format: Format


class UndoArguments(NamedTuple):
    run_dir: str
    discard: bool
    dry_run: bool
    format: Format
    allowed_file_systems: tuple[str, ...]


class DumpArguments(NamedTuple):
    path: str
    from_offset: int
    to_offset: int | None
    limit: int | None
    format: DumpFormat


class VerifyArguments(NamedTuple):
    log_dirs: tuple[str, ...]
    partitions: tuple[str, ...]
    against: str | None
    as_of: str | None
    run_reports: tuple[str, ...]
    topic_configs: str | None
    format: Format
    manifest: bool = False


class Result(NamedTuple):
    """What a command leaves behind: everything it knows, and the summary alone."""

    document: JsonObject  # begins with the fields of the summary
    summary: JsonObject | None = None  # None: the document is short enough to be one
    measured: "RoundPlan | CleaningReport | None" = None  # what metrics are of, beside the ending
    whole: Callable[[], JsonObject] | None = (
        None  # makes the document of a report, where it is long
    )


class Request(NamedTuple):
    """What the words of the command line ask for."""

    command: str
    carry_out: Callable[[], Result | None]  # None: a stream of lines that needs no summary
    format: Format
    reports: tuple[str, ...]
    debug: bool
    metrics: str | None = None
    quiet: bool = False  # say nothing unless a person has to see it
