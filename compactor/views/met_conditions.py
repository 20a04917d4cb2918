"""The conditions of --fail-if that hold, for a person and as JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compactor.host.printable import one_line, printable
from compactor.views.report_json import JsonObject

if TYPE_CHECKING:  # most plans and runs have no conditions, and need not load what reads them
    from compactor.watching.conditions import Concerned, Met

SHOWN_LOGS = 10


def met_lines(met: "Sequence[Met]") -> list[str]:
    """A line for each condition, then one for each log that it concerns, as many as can be read."""
    lines = []
    for condition, logs in met:
        lines.append(f"Condition met: {one_line(condition)}")
        lines += [f"  {_log(concerned)}" for concerned in logs[:SHOWN_LOGS]]
        if len(logs) > SHOWN_LOGS:
            lines.append(f"  … and {len(logs) - SHOWN_LOGS:,} more (all: --format json)")
    return lines


def met_documents(met: "Sequence[Met]") -> list[JsonObject]:
    """Each condition with every log that it concerns."""
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


def _log(concerned: "Concerned") -> str:
    log = concerned.log
    values = ", ".join(f"{name} {value:.10g}" for name, value in concerned.values.items())
    why = values or one_line(log.reason or "")
    return f"{printable(log.name)}{': ' if why else ''}{why}"
