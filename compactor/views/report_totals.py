"""Many reasons why logs are not cleaned, merged into few. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from compactor.host.printable import SIZE_UNITS
from compactor.outcome.round_report import LogReport, LogStatus
from compactor.reason_codes import ReasonCode

# a size is a number, too, with its unit
NUMBER = re.compile(rf"\d+(?:\.\d+)?(?: (?:{'|'.join(SIZE_UNITS)})\b)?")


@dataclass(frozen=True, slots=True)
class ReasonGroup:
    """Logs of one status whose reasons differ in nothing but names and numbers."""

    status: LogStatus
    reason: str  # varying numbers as `least…greatest`
    names: tuple[str, ...]
    reason_code: ReasonCode | None = None


def group_reasons(logs: Iterable[LogReport]) -> list[ReasonGroup]:
    """Group reasons that say the same of different logs; the largest groups first."""
    groups: dict[tuple[LogStatus, str], list[LogReport]] = {}
    for log in logs:
        shape = NUMBER.sub(_shape, _without_names(log))
        groups.setdefault((log.status, shape), []).append(log)
    found = [
        ReasonGroup(status, _common(same), tuple(log.name for log in same), same[0].reason_code)
        for (status, _), same in groups.items()
    ]
    return sorted(found, key=lambda group: -len(group.names))


def _reason(log: LogReport) -> str:
    return log.reason or "no reason given"


def _without_names(log: LogReport) -> str:
    """Return the reason without the log's own path and name, so that it can equal another's."""
    return _reason(log).replace(f"{log.log_dir}/{log.name}", "…").replace(log.name, "…")


def _common(logs: list[LogReport]) -> str:
    """Return the reason of a single log as it is; of several, with ranges for numbers that vary."""
    if len(logs) == 1:
        return _reason(logs[0])
    reasons = [_without_names(log) for log in logs]
    columns = zip(*(NUMBER.findall(reason) for reason in reasons), strict=True)
    ranges = iter([_range(column) for column in columns])
    return NUMBER.sub(lambda _: next(ranges), reasons[0])


def _shape(number: re.Match[str]) -> str:
    return "# B" if " " in number[0] else "#"


def _range(numbers: tuple[str, ...]) -> str:
    least, greatest = min(numbers, key=_value), max(numbers, key=_value)
    return least if _value(least) == _value(greatest) else f"{least}…{greatest}"


def _value(number: str) -> float:
    """Return the value of a number; of a size, in bytes."""
    digits, _, unit = number.partition(" ")
    return float(digits) * 1000.0 ** SIZE_UNITS.index(unit or "B")
