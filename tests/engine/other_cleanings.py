"""Cleanings that end otherwise than Kafka's, each for one reason of docs/differences.md.

What stands in a log after one of them is another thing than what Kafka leaves, so a script can be
compared up to there. A reason counts where our own report says that it holds, and Kafka's cleaner
ends as docs/differences.md says that it does; everything else is a difference.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from compactor.outcome.round_report import LogReport, LogStatus
from storage.file_names import CLEANED

Line = dict[str, Any]


class _Reason(NamedTuple):
    """A row of docs/differences.md: what Kafka's cleaner says, and what our report does."""

    name: str
    kafkas: frozenset[str | None] | None  # the error, or None where it cleans the log; None: any
    ours: re.Pattern[str]


def _reason(name: str, kafkas: set[str | None] | None, ours: str) -> _Reason:
    return _Reason(name, None if kafkas is None else frozenset(kafkas), re.compile(ours))


# Kafka's cleaner stops, ours goes on, and a note of the report says so
_GOES_ON = (
    _reason("a full index", {"IllegalArgumentException"}, "segment.index.bytes has no room"),
    _reason(
        "no empty form of a last batch of v0 or v1",
        {"IllegalStateException"},
        "of message format v0 or v1 and loses all its records",
    ),
    _reason(
        "a batch that Kafka's builder refuses",
        {"IllegalArgumentException", "IllegalStateException"},
        "rebuilt where Kafka's cleaner would stop",
    ),
)
# ours sets the log aside, for what the report says; Kafka's cleaner does not look, or stumbles
_SET_ASIDE = (
    _reason(
        "offsets that overlap or go backwards",
        {None, "InvalidOffsetException", "IllegalArgumentException"},
        r"offset \d+ is not (above|below) .*(last|range to clean ends)"
        r"|base offset \d+, expected \d+ or more",
    ),
    _reason(
        "bytes that are no whole batch",
        {None, "CorruptRecordException", "IllegalStateException", "IllegalArgumentException"},
        r"batch length -?\d+ is|entry length -?\d+, expected|cut short|batch header has \d+ of"
        r"|does not parse within",
    ),
    _reason(
        "records that do not decompress",
        {"KafkaException"},
        r"\.log, byte \d+: (gzip|snappy|lz4|zstd): ",
    ),
    _reason(
        "a wrapper whose lengths do not fit it",
        {"IndexOutOfBoundsException"},
        "the wrapper's value does not end within",
    ),
    _reason("an index that its log contradicts", None, r"\.index, byte \d+: entry"),
    _reason("a wrong checksum", None, r"CRC .* its bytes give|checksum .* is stored"),
)
_NO_ABORTS = "aborted transactions, where the log start is below the first segment"


def first_other_cleaning(
    expected: Sequence[Line], actual: Sequence[Line], reports: Mapping[int, LogReport]
) -> tuple[int, str] | None:
    """At which line it happens, from 0, and for which reason; None where none does.

    reports: of our cleanings, by the numbers of their lines, from 1.
    """
    before: Line = {}
    for number, (kafkas, ours) in enumerate(zip(expected, actual, strict=False)):
        report = reports.get(number + 1)
        if kafkas["op"] == "clean" and report is not None and kafkas != ours:
            reason = _reason_of(kafkas, ours, report) or _unseen_aborts(before, kafkas, ours)
            if reason is not None:
                return number, reason
        before = kafkas
    return None


def without_leftovers(
    expected: Sequence[Line], actual: Sequence[Line], reports: Mapping[int, LogReport]
) -> list[Line]:
    """Kafka's lines without the `.cleaned` files that its cleaner leaves where it stops with an
    error, and ours has set the log aside with the same. They are there until the log is opened."""
    kept, may_be_left = list[Line](), False
    for number, (kafkas, ours) in enumerate(zip(expected, actual, strict=False)):
        report = reports.get(number + 1)
        if report is not None and report.status is LogStatus.SET_ASIDE and "error" in kafkas:
            may_be_left = True
        elif kafkas["op"] == "open" and "error" not in kafkas:
            may_be_left = False
        kept.append(_without_cleaned(kafkas, ours) if may_be_left else kafkas)
    return [*kept, *expected[len(kept) :]]


def _without_cleaned(kafkas: Line, ours: Line) -> Line:
    if kafkas["op"] != "files" or "result" not in kafkas or "result" not in ours:
        return kafkas
    here = {file["name"] for file in ours["result"]}
    files = [
        file
        for file in kafkas["result"]
        if file["name"] in here or not file["name"].endswith(CLEANED)
    ]
    return {**kafkas, "result": files}


def _reason_of(kafkas: Line, ours: Line, report: LogReport) -> str | None:
    reasons: Sequence[_Reason]
    if report.status is LogStatus.CLEANED and "error" not in ours:
        told, reasons = " ".join(report.notes), _GOES_ON
    elif report.status is LogStatus.SET_ASIDE:
        told, reasons = report.reason or "", _SET_ASIDE
    else:
        return None
    for reason in reasons:
        is_kafkas = reason.kafkas is None or kafkas.get("error") in reason.kafkas
        if is_kafkas and reason.ours.search(told):
            return reason.name
    return None


def _unseen_aborts(before: Line, kafkas: Line, ours: Line) -> str | None:
    """Where the log start is below the first segment, Kafka's cleaner finds no aborted transaction
    for its map, and takes their records for the latest of their keys: it keeps fewer than we do."""
    state, cleaned = before.get("state"), kafkas.get("result", {})
    made = ours.get("result", {})
    if not state or not cleaned.get("cleaned") or not made.get("cleaned"):
        return None
    has_aborts = any(segment["txnindex"] for segment in state["segments"])
    is_below = cleaned["first_dirty_offset"] < state["segments"][0]["base_offset"]
    keeps_fewer = cleaned["messages_written"] < made["messages_written"]
    return _NO_ABORTS if has_aborts and is_below and keeps_fewer else None
