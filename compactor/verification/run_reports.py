"""Reads the reports for `verify --against`: of runs, and of commands that changed a log.

They are joined in the order in which the commands began.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from compactor.errors import UsageError
from compactor.verification.evidence import (
    CleaningClock,
    Evidence,
    LogKey,
    Reported,
    ReportedAppend,
    Round,
    Truncation,
)
from storage.files.local import LOCAL

NAME = "run_reports"  # of the parameter
_UNDONE = ("undone", "as-before")
_WRONG = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)

Document = Mapping[str, Any]


class Known(NamedTuple):
    """What the reports say."""

    clock: CleaningClock | None  # of the one run, or the last one; None: there is none
    evidence: Evidence


def read_run_report(path: str) -> CleaningClock:
    """What the report of one run says (`compactor run --report`). UsageError if it is none."""
    clock = read_run_reports([path]).clock
    if clock is None:
        raise _refused(path)
    return clock


def read_run_reports(paths: Sequence[str]) -> Known:
    """What reports say of what was done to logs. UsageError where one is no such report."""
    found = [(path, _read(path)) for path in paths]
    try:
        found.sort(key=lambda item: int(item[1].get("started_at_ms", 0)))
    except _WRONG as error:
        raise _refused(paths[0] if len(paths) == 1 else ", ".join(paths)) from error
    return _Reports(found).known()


def _read(path: str) -> Document:
    try:
        with LOCAL.open_named(path) as source:
            document = json.loads(source.read().decode())
        if document["command"] not in _READERS:
            raise ValueError("not of a command that changes a log")
        if document.get("dry_run"):
            raise ValueError("not of what was done")
    except OSError as error:
        raise UsageError(error.strerror or "", NAME, path) from error
    except _WRONG as error:
        raise _refused(path) from error
    return document  # type: ignore[no-any-return]


def _refused(path: str) -> UsageError:
    return UsageError("is not a report of a run, of undo or of a log command", NAME, path)


class _Reports:
    """Takes reports in, in their order."""

    def __init__(self, documents: Sequence[tuple[str, Document]]) -> None:
        self._documents = documents
        self._logs: dict[LogKey, Reported] = {}
        self._rounds: dict[LogKey, dict[str, Round]] = {}  # by the id of the run
        self._starts: dict[LogKey, dict[str, int]] = {}  # of logs, by the id of the run
        self._cut_short: list[Round] = []
        self._clock: CleaningClock | None = None

    def known(self) -> Known:
        for path, document in self._documents:
            try:
                _READERS[document["command"]](self, document)
            except _WRONG as error:
                raise _refused(path) from error
        for key, starts in self._starts.items():
            for start in starts.values():
                self._begins_at(key, start)
        logs = {
            key: replace(
                self._logs.get(key, Reported()), rounds=tuple(self._rounds.get(key, {}).values())
            )
            for key in self._logs.keys() | self._rounds.keys()
        }
        return Known(
            self._clock,
            Evidence(
                logs=logs, cut_short=tuple(self._cut_short), has_reports=bool(self._documents)
            ),
        )

    def run(self, document: Document) -> None:
        as_of_ms = document["as_of_ms"]
        if as_of_ms is None:
            return  # it ended before it began
        as_of_ms = int(as_of_ms)
        from_ms = int(document.get("horizons_from_ms", as_of_ms))  # older versions wrote none
        if "logs" not in document:
            if not document.get("changed", True):
                return
            self._cut_short.append(Round(as_of_ms, from_ms))
            return
        retention: dict[LogKey, int] = {}
        for log in document["logs"]:
            key = str(log["topic"]), int(log["partition"])
            if log["delete_retention_ms"] is not None:
                retention[key] = int(log["delete_retention_ms"])
            self._take_log(key, log, document, Round(as_of_ms, from_ms, retention.get(key)))
        self._clock = CleaningClock(as_of_ms, True, retention, from_ms)

    def _take_log(self, key: LogKey, log: Document, document: Document, one: Round) -> None:
        run_id = str(document.get("run_id"))
        start = log.get("retention", {}).get("log_start_offset")
        if start is not None:
            self._starts.setdefault(key, {})[run_id] = int(start)
        status = log.get("status", "cleaned")
        if status == "cleaned" and log.get("end_offset") is not None:
            first = log["first_dirty_offset"]
            one = one._replace(
                first_dirty_offset=None if first is None else int(first),
                end_offset=int(log["end_offset"]),
            )
        elif status not in ("cleaned", "failed"):
            return
        self._rounds.setdefault(key, {})[run_id] = one

    def undo(self, document: Document) -> None:
        undone = document.get("undone_run")
        for log in document.get("logs", ()):
            key = str(log["topic"]), int(log["partition"])
            if undone is not None and log["status"] in _UNDONE:
                self._rounds.get(key, {}).pop(str(undone), None)
                self._starts.get(key, {}).pop(str(undone), None)

    def change(self, document: Document) -> None:
        """Take the report of `log …`."""
        if not document["changed"]:
            return
        key = str(document["topic"]), int(document["partition"])
        after = document["after"]
        log = self._logs.get(key, Reported())
        log = replace(log, log_end=int(after["log_end"]))
        if document["command"] == "log truncate":
            to = int(after["log_end"])
            left = tuple(each for each in log.appended if each.offset < to)
            one = Truncation(int(document["started_at_ms"]), to)
            log = replace(log, truncations=(*log.truncations, one), appended=left)
        added = tuple(
            ReportedAppend(int(e["offset"]), e["key_sha256"], bool(e["is_tombstone"]))
            for e in document.get("appended", ())
        )
        self._logs[key] = replace(log, appended=log.appended + added)
        if int(after["log_start"]) > int(document["before"]["log_start"]):
            self._begins_at(key, int(after["log_start"]))

    def _begins_at(self, key: LogKey, start: int) -> None:
        log = self._logs.get(key, Reported())
        self._logs[key] = replace(log, log_start=max(start, log.log_start or 0))

    def other(self, document: Document) -> None:
        """Take the report of a command that takes nothing away."""


_READERS: Mapping[str, Callable[[_Reports, Document], None]] = {
    "run": _Reports.run,
    "undo": _Reports.undo,
    "recover": _Reports.other,
    "log roll": _Reports.change,
    "log delete-records": _Reports.change,
    "log truncate": _Reports.change,
    "log append": _Reports.change,
    "log abort": _Reports.change,
}
