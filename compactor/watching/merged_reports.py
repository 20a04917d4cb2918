"""Reports of several hosts, or of several nights, made one: the sum of all, and the worst ending.

Takes whole documents (`--report x.json`) and summaries (the last line of standard output) alike.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from compactor.errors import ConfigError
from compactor.json_types import is_of_type
from compactor.outcome.exit_codes import ExitCode
from compactor.outcome.json_values import MAY_LACK
from compactor.outcome.round_report import REPORT_SCHEMA_VERSION, LogStatus
from compactor.reason_codes import ReasonCode
from storage.files.files import Files

MAX_BYTES = 1 << 30
# worst first: what an operator has to see if he sees one
_WORST_FIRST = (
    ExitCode.FAILED,
    ExitCode.TERMINATED,
    ExitCode.HUNG_UP,
    ExitCode.INTERRUPTED,
    ExitCode.REFUSED,
    ExitCode.USAGE,
    ExitCode.PARTIAL,
    ExitCode.CONDITION,
    ExitCode.OK,
)
_BAD = [LogStatus.SET_ASIDE.value, LogStatus.FAILED.value]
_NEEDED = ("schema_version", "command", "status", "exit_code", "reason_code", "run_id", "host")
_TYPES: Mapping[str, Any] = {  # of what is used
    **dict.fromkeys(("command", "status", "reason_code", "run_id", "host"), str),
    "exit_code": int,
    **dict.fromkeys(("changed", "dry_run"), bool | None),
    **dict.fromkeys(("started_at", "error"), str | None),
    "seconds": float | None,
    "totals": dict[str, Any] | None,
    **dict.fromkeys(("log_dirs", "logs", "not_taken"), list[dict[str, Any]] | None),
}
_TYPES_OF_TOTALS: Mapping[str, Any] = {
    "logs": dict[str, int],
    "bytes_before": int,
    "bytes_after": int,
}

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneReport:
    """What the merged report says of each, whose version may be an older one."""

    file: str
    command: str
    status: str
    exit_code: int
    reason_code: str
    run_id: str
    host: str
    changed: bool | None = field(default=None, metadata=MAY_LACK)
    dry_run: bool | None = field(default=None, metadata=MAY_LACK)
    started_at: str | None = field(default=None, metadata=MAY_LACK)
    seconds: float | None = field(default=None, metadata=MAY_LACK)
    log_dirs: list[dict[str, Any]] | None = field(default=None, metadata=MAY_LACK)
    error: str | None = field(default=None, metadata=MAY_LACK)
    totals: dict[str, Any] | None = field(default=None, metadata=MAY_LACK)


class MergedReports(NamedTuple):
    """All of them, and what they come to."""

    reports: tuple[tuple[str, Document], ...]  # by the file that each was read from, in order
    exit_code: ExitCode  # the worst
    reason_code: ReasonCode | None  # of the first that ended so; None: of another version
    totals: dict[str, Any]  # sums of every number that their totals have

    @property
    def is_changed(self) -> bool:
        """Whether any of them changed something."""
        return any(document.get("changed") for _, document in self.reports)


def merged_reports(paths: Sequence[str], files: Files) -> MergedReports:
    """Read reports and add them up. Raise ConfigError for what is none, OSError."""
    reports = tuple((path, _read(path, files)) for path in paths)
    codes = [ExitCode(document["exit_code"]) for _, document in reports]
    worst = min(codes, key=_WORST_FIRST.index)
    first = next(doc for (_, doc), code in zip(reports, codes, strict=True) if code is worst)
    known = {code.value: code for code in ReasonCode}
    return MergedReports(
        reports,
        worst,
        known.get(first["reason_code"]),
        _sum([doc["totals"] for _, doc in reports if isinstance(doc.get("totals"), dict)]),
    )


def of_each(path: str, document: Document) -> OneReport:
    """What the merged report says of one of them. path: its file."""
    names = [each.name for each in fields(OneReport) if each.name in document]
    return OneReport(file=path, **{name: document[name] for name in names if name != "file"})


def log_dirs_of(document: Document) -> list[Any]:
    """Return the paths of the log directories that a report is about."""
    return [each.get("path") for each in document.get("log_dirs") or ()]


def bad_logs_of(document: Document) -> list[dict[str, Any]]:
    """Return the logs that were set aside or failed; a summary names none."""
    logs = [*(document.get("logs") or ()), *(document.get("not_taken") or ())]
    return [log for log in logs if log.get("status") in _BAD]


def _long(digits: str) -> int:
    """Every whole number of a report has 64 bits."""
    number = int(digits)
    if not -(2**63) <= number < 2**63:
        raise ValueError("a number of more than 64 bits")
    return number


def _read(path: str, files: Files) -> Document:
    data = files.read_range(path, 0, MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ConfigError(f"has more than {MAX_BYTES} bytes, so it is no report", value=path)
    try:
        found = json.loads(data, parse_int=_long)
    except (ValueError, RecursionError) as error:
        place = f", byte {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise ConfigError("not JSON, so it is no report", value=f"{path}{place}") from error
    if not isinstance(found, dict) or not all(name in found for name in _NEEDED):
        raise ConfigError(
            f"not a report of this tool: {', '.join(_NEEDED)} are missing", value=path
        )
    version = found["schema_version"]
    if type(version) is not int or not 1 <= version <= REPORT_SCHEMA_VERSION:
        known = f"versions up to {REPORT_SCHEMA_VERSION} are known"
        raise ConfigError(f"schema_version {_shown(version)}: {known}", value=path)
    if not is_of_type(found["exit_code"], int) or found["exit_code"] not in _WORST_FIRST:
        raise ConfigError(
            f"exit_code {_shown(found['exit_code'])} is none of this tool", value=path
        )
    for name, type_ in _TYPES.items():
        if not is_of_type(found.get(name), type_):
            raise ConfigError(f"{name} is {_shown(found[name])}, so it is no report", value=path)
    totals = found.get("totals") or {}
    for name in totals.keys() & _TYPES_OF_TOTALS.keys():
        if not is_of_type(totals[name], _TYPES_OF_TOTALS[name]):
            raise ConfigError(f"{name} is {_shown(totals[name])}, so it is no report", value=path)
    if ("bytes_before" in totals) != ("bytes_after" in totals):
        raise ConfigError("has bytes_before or bytes_after alone, so it is no report", value=path)
    return found


def _shown(value: object) -> str:
    """The beginning of a value, as it stands in the file."""
    return json.dumps(value)[:40]


def _sum(totals: Sequence[Any]) -> dict[str, Any]:
    """Number by number; what is no number and no group of them is left out."""
    names = dict.fromkeys(name for total in totals for name in total)
    summed: dict[str, Any] = {}
    for name in names:
        values = [total[name] for total in totals if name in total]
        if all(isinstance(value, dict) for value in values):
            summed[name] = _sum(values)
        elif all(type(value) in (int, float) for value in values):
            summed[name] = sum(values)
    return summed
