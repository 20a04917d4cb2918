"""Reports and summaries as JSON, for programs that run the command on a schedule.

The report is one object. It begins with the fields of the summary, so that with `--format json`
the single line on standard output is both: the whole report, and the last line with status and
exit code. `schema_version` rises when a field changes its meaning or goes; new fields may come at
any time.
"""

import json
from typing import Any

from compactor.host.printable import printable
from compactor.host.progress import START_STAGE
from compactor.outcome.exit_codes import ExitCode
from compactor.outcome.round_report import (
    FIRST_USE,
    REPORT_SCHEMA_VERSION,
    SESSION,
    SESSION_END,
)
from compactor.reason_codes import ReasonCode

JsonObject = dict[str, Any]
_PHASE_WORDS = {  # of Spark: of Java, and Python's workers
    FIRST_USE: "first use",
    SESSION: START_STAGE,
    SESSION_END: "end engine",
}


def to_line(document: JsonObject) -> str:
    """One line of pure ASCII: names that are not UTF-8 come out escaped."""
    return json.dumps(document, separators=(",", ":"))


def to_text(document: JsonObject) -> str:
    return json.dumps(document, indent=2) + "\n"


def summary(
    command: str,
    code: ExitCode,
    error: str | None = None,
    reason_code: ReasonCode = ReasonCode.DONE,
) -> JsonObject:
    """What every summary begins with; error is the line that a person was shown."""
    document: JsonObject = {
        "schema_version": REPORT_SCHEMA_VERSION,
        "command": command,
        "status": code.status,
        "exit_code": int(code),
        "reason_code": reason_code.value,
    }
    return document if error is None else document | {"error": error}


def phase_name(name: str) -> str:
    """Return the name of a phase for a person, printable."""
    return _PHASE_WORDS.get(name) or printable(name)
