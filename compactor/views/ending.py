"""Fields of the documents of several commands: the ending, a run's forecast, conditions met."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from compactor.command_context import CommandContext
from compactor.diagnosis.checks import Check
from compactor.host.machine import version
from compactor.host.printable import iso_time, one_line, printable
from compactor.log_dirs.preconditions import RunEnding
from compactor.outcome.exit_codes import ExitCode
from compactor.outcome.json_values import MAY_LACK, to_json, written
from compactor.reason_codes import ReasonCode
from compactor.views.report_json import JsonObject, summary
from storage.formats.kafka_settings import json_value
from storage.kafka_versions import KafkaUse

if TYPE_CHECKING:  # most plans and runs have no conditions, and need not load what reads them
    from compactor.watching.conditions import Concerned, Met


Status = Literal["ok", "failed", "usage", "refused", "partial", "condition", "interrupted"]
_MAY_LACK_OR_BE_NULL = written(may_lack=True, may_be_null=True)


class SettingNotes(NamedTuple):
    """Whether any known Kafka has a setting, and why it has no effect, for `configs`."""

    is_known: bool  # a Kafka that is known has it
    note: str | None  # why it has no effect


@dataclass(frozen=True, slots=True)
class SettingDocument:
    value: int | float | str | bool | None  # None: of an unknown setting, which may be a secret
    source: str
    notes: SettingNotes | None = field(default=None, metadata=written(is_flat=True, may_lack=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationDocument:
    include: str | None
    exclude: str | None
    assume_fully_replicated: bool
    producer_id_expiration_ms: int
    topics: dict[str, dict[str, SettingDocument]]


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaDocument:
    """Which Kafka's answer a command followed, for the logs of these directories."""

    version: str
    release: str
    why: str
    log_dirs: Sequence[str]


@dataclass(frozen=True, slots=True)
class IgnoredDocument:
    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirDocument:
    """A log directory. Commands that have seen more in it write an object of their own."""

    path: str
    partitions: int | None = field(default=None, metadata=MAY_LACK)
    has_clean_shutdown: bool | None = field(default=None, metadata=MAY_LACK)
    has_high_watermarks: bool | None = field(default=None, metadata=MAY_LACK)
    ignored: list[IgnoredDocument] | None = field(default=None, metadata=MAY_LACK)
    foreign: list[str] | None = field(default=None, metadata=MAY_LACK)
    problem: str | None = field(default=None, metadata=_MAY_LACK_OR_BE_NULL)
    clean_shutdown: bool | None = field(default=None, metadata=MAY_LACK)
    removed: list[str] | None = field(default=None, metadata=MAY_LACK)
    checks: list[Check] | None = field(default=None, metadata=MAY_LACK)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingDocument:
    """Fields that the last JSON document of every command has, however the command ended."""

    schema_version: Literal[2]
    command: str
    status: Status
    exit_code: int
    reason_code: ReasonCode
    error: str | None = field(default=None, metadata=MAY_LACK)
    changed: bool
    run_id: str
    version: str
    host: str
    started_at_ms: int
    started_at: str
    seconds: float = field(metadata=written(digits=3))
    as_of_ms: int | None
    as_of: str | None
    # none: the command needs no version, or ended before
    kafka: list[KafkaDocument] = field(metadata=written(is_required=False))
    log_dirs: list[LogDirDocument]
    # of a report
    configuration: ConfigurationDocument | None = field(default=None, metadata=_MAY_LACK_OR_BE_NULL)
    # of `plan`, also where it fails, and of `doctor`
    run_would_end: RunEnding | None = field(default=None, metadata=_MAY_LACK_OR_BE_NULL)


def with_ending(document: JsonObject, context: CommandContext) -> JsonObject:
    """Add to the document of a command what every ending has; its own fields stay."""
    as_of_ms = context.as_of_ms
    ending = EndingDocument(
        schema_version=document["schema_version"],
        command=document["command"],
        status=document["status"],
        exit_code=document["exit_code"],
        reason_code=document["reason_code"],
        error=document.get("error"),
        changed=context.is_changed,
        run_id=context.run_id,
        version=version(),
        host=os.uname().nodename,
        started_at_ms=context.started_at_ms,
        started_at=iso_time(context.started_at_ms),
        seconds=context.seconds,
        as_of_ms=as_of_ms,
        as_of=None if as_of_ms is None else iso_time(as_of_ms),
        kafka=[_kafka(use) for use in context.kafka],
        log_dirs=[LogDirDocument(path=path) for path in context.log_dirs],
        run_would_end=context.run_ending,
    )
    begin: JsonObject = to_json(ending)
    return begin | document


def without_report(document: JsonObject, error: str) -> JsonObject:
    """Return the ending of a command whose report could not be written: never a good one."""
    if document["exit_code"] != ExitCode.OK:
        return document
    failed = summary(
        document["command"], ExitCode.FAILED, error, reason_code=ReasonCode.REPORT_NOT_WRITTEN
    )
    return failed | {name: value for name, value in document.items() if name not in failed}


def configuration_document(context: CommandContext) -> ConfigurationDocument | None:
    """Return the settings that somebody set, and who; None where the command did not know them."""
    config = context.config
    if config is None:
        return None
    return ConfigurationDocument(
        include=None if config.include is None else config.include.pattern,
        exclude=None if config.exclude is None else config.exclude.pattern,
        assume_fully_replicated=config.assume_fully_replicated,
        producer_id_expiration_ms=config.producer_id_expiration_ms,
        topics={
            topic: {
                name: SettingDocument(json_value(value), layer.place)
                for layer in config.layers(topic)
                for name, value in layer.values.items()
            }
            for topic in sorted(context.topics)
        },
    )


def _kafka(use: KafkaUse) -> KafkaDocument:
    version, why, _ = use.choice
    return KafkaDocument(
        version=version.name, release=version.release, why=why, log_dirs=use.log_dirs
    )


SHOWN_LOGS = 10


def met_lines(met: "Sequence[Met]") -> list[str]:
    """Return a line for each condition, then one for each of the first logs that it concerns."""
    lines = []
    for condition, logs in met:
        lines.append(f"Condition met: {one_line(condition)}")
        lines += [f"  {_concerned(concerned)}" for concerned in logs[:SHOWN_LOGS]]
        if len(logs) > SHOWN_LOGS:
            lines.append(f"  … and {len(logs) - SHOWN_LOGS:,} more (all: --format json)")
    return lines


def _concerned(concerned: "Concerned") -> str:
    log = concerned.log
    values = ", ".join(f"{name} {value:.10g}" for name, value in concerned.values.items())
    why = values or one_line(log.reason or "")
    return f"{printable(log.name)}{': ' if why else ''}{why}"
