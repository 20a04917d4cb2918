"""The time that counts as now: `--as-of` is read here, and refused where it would lose data.

A wrong clock dates tombstones and markers wrongly, so that they go at once or before their time.
"""

import re
from datetime import UTC, datetime

from compactor.errors import UsageError
from compactor.host.printable import iso_time, span_text
from compactor.settings.config import CLOCKS_DIFFER_MS

MAX_TIME_MS = 253_402_300_799_999  # the last millisecond of the year 9999
_END_OF_1970_MS = 31_536_000_000
_LATEST_MEANT_MS = 4_102_444_800_000  # the year 2100: beyond it a number has another unit


def as_of_ms(text: str, option: str = "as_of") -> int:
    """Read epoch milliseconds from such a number, or from ISO 8601, in UTC unless it has a zone.

    option: the name that a refusal gives it.
    """
    time_ms = _time_ms(text.strip())
    if time_ms is None:
        problem = "expected epoch milliseconds or ISO 8601, like 2026-11-20T12:00:00Z"
        raise UsageError(problem, option, text)
    if not 0 <= time_ms <= MAX_TIME_MS:
        problem = f"outside of the years 1970 to 9999{_meant_in_finer_units(time_ms)}"
        raise UsageError(problem, option, text)
    return time_ms


def doubt_of_clock(text: str, as_of_ms: int, now_ms: int) -> UsageError | None:
    """Return what is wrong with such a time; None if nothing is."""
    found = f"is {iso_time(as_of_ms)}"
    if as_of_ms < _END_OF_1970_MS:
        meant = _meant_in_seconds(text)
        others = ["any_clock"] if meant else ["as_of", "any_clock"]
        problem = f"{found}; {meant or _PRESENT}; {{}} accepts it"
        return UsageError(problem, "as_of", text, others)
    ahead_ms = as_of_ms - now_ms
    if ahead_ms <= CLOCKS_DIFFER_MS:
        return None
    zone = "; a time without a zone is taken for UTC" if _has_no_zone(text) else ""
    return UsageError(
        f"{found}, {span_text(ahead_ms)} ahead of this machine's clock, {iso_time(now_ms)}{zone}; "
        "tombstones would go before their time. Without {} it is the present time; {} accepts it",
        "as_of",
        text,
        ["as_of", "any_clock"],
    )


_PRESENT = "without {} it is the present time"


def _meant_in_seconds(text: str) -> str | None:
    in_seconds = int(text) * 1000 if text.strip().isdigit() else MAX_TIME_MS + 1
    if _END_OF_1970_MS <= in_seconds <= MAX_TIME_MS:
        return f"are those seconds? In milliseconds {iso_time(in_seconds)} is {in_seconds}"
    return None


def _meant_in_finer_units(number: int) -> str:
    """Return a hint for a number of microseconds or nanoseconds; "" for any other number."""
    for unit, in_a_ms in (("microseconds", 1000), ("nanoseconds", 1_000_000)):
        meant_ms = number // in_a_ms
        if 0 < meant_ms <= _LATEST_MEANT_MS:
            return f"; are those {unit}? In milliseconds {iso_time(meant_ms)} is {meant_ms}"
    return ""


def _has_no_zone(text: str) -> bool:
    _, _, time = text.strip().upper().partition("T")
    return bool(time) and not time.endswith("Z") and "+" not in time and "-" not in time


def _time_ms(text: str) -> int | None:
    if re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    since_epoch = (time if time.tzinfo else time.replace(tzinfo=UTC)) - datetime(
        1970, 1, 1, tzinfo=UTC
    )
    return round(since_epoch.total_seconds() * 1000)
