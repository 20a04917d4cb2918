"""Fields of the documents of several commands: the ending, a run's forecast, conditions met."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from compactor.command_context import CommandContext
from compactor.host.machine import version
from compactor.host.printable import iso_time, one_line, printable
from compactor.log_dirs.preconditions import RunEnding
from compactor.outcome.exit_codes import ExitCode
from compactor.reason_codes import ReasonCode
from compactor.views.report_json import JsonObject, ending, summary
from storage.formats.kafka_settings import json_value
from storage.kafka_versions import KafkaUse

if TYPE_CHECKING:  # most plans and runs have no conditions, and need not load what reads them
    from compactor.watching.conditions import Concerned, Met


def run_ending_document(run: RunEnding) -> JsonObject:
    """Return the field `run_would_end`."""
    return ending(run.exit_code, run.reason_code) | {
        "obstacles": [
            {
                **ending(obstacle.exit_code, obstacle.reason_code),
                "path": obstacle.path,
                "errno": obstacle.errno,
                "problem": obstacle.problem,
                "remedy": obstacle.remedy,
            }
            for obstacle in run.obstacles
        ]
    }


# what every summary begins with; then comes what stands in every ending
_HEAD = ("schema_version", "command", "status", "exit_code", "reason_code", "error")


def with_ending(document: JsonObject, context: CommandContext) -> JsonObject:
    """Add to the document of a command what every ending has; its own fields stay."""
    head = {name: document[name] for name in _HEAD if name in document}
    return head | _ending(context) | document


def without_report(document: JsonObject, error: str) -> JsonObject:
    """Return the ending of a command whose report could not be written: never a good one."""
    if document["exit_code"] != ExitCode.OK:
        return document
    failed = summary(
        document["command"], ExitCode.FAILED, error, reason_code=ReasonCode.REPORT_NOT_WRITTEN
    )
    return failed | {name: value for name, value in document.items() if name not in failed}


def configuration_document(context: CommandContext) -> JsonObject | None:
    """Return the settings that somebody set, and who; None where the command did not know them."""
    config = context.config
    if config is None:
        return None
    return {
        "include": None if config.include is None else config.include.pattern,
        "exclude": None if config.exclude is None else config.exclude.pattern,
        "assume_fully_replicated": config.assume_fully_replicated,
        "producer_id_expiration_ms": config.producer_id_expiration_ms,
        "topics": {
            topic: {
                name: {"value": json_value(value), "source": layer.place}
                for layer in config.layers(topic)
                for name, value in layer.values.items()
            }
            for topic in sorted(context.topics)
        },
    }


def _kafka(use: KafkaUse) -> JsonObject:
    version, why, _ = use.choice
    return {
        "version": version.name,
        "release": version.release,
        "why": why,
        "log_dirs": list(use.log_dirs),
    }


def _ending(context: CommandContext) -> JsonObject:
    as_of_ms, run = context.as_of_ms, context.run_ending
    return {
        "changed": context.is_changed,
        "run_id": context.run_id,
        "version": version(),
        "host": os.uname().nodename,
        "started_at_ms": context.started_at_ms,
        "started_at": iso_time(context.started_at_ms),
        "seconds": round(context.seconds, 3),
        "as_of_ms": as_of_ms,
        "as_of": None if as_of_ms is None else iso_time(as_of_ms),
        "kafka": [_kafka(use) for use in context.kafka],
        "log_dirs": [{"path": path} for path in context.log_dirs],
        **({"run_would_end": run_ending_document(run)} if run is not None else {}),
    }


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


def met_documents(met: "Sequence[Met]") -> list[JsonObject]:
    """Return each condition with every log that it concerns."""
    return [
        {
            "condition": condition,
            "logs": [
                {
                    "log_dir": concerned.log.log_dir,
                    "topic": concerned.log.topic,
                    "partition": concerned.log.partition,
                    "values": dict(concerned.values),
                }
                for concerned in logs
            ],
        }
        for condition, logs in met
    ]


def _concerned(concerned: "Concerned") -> str:
    log = concerned.log
    values = ", ".join(f"{name} {value:.10g}" for name, value in concerned.values.items())
    why = values or one_line(log.reason or "")
    return f"{printable(log.name)}{': ' if why else ''}{why}"
