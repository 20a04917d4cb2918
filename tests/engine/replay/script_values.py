"""Values of a script that stand for others: `end-1`, `segment[-2]`, `current+1`, `next`."""

import re
from typing import Any

from compactor.json_types import json_text
from storage.errors import LogCompactionError
from storage.log.errors import LogError
from storage.log.log import Log
from storage.log.producer_state_entry import MAX_SEQUENCE, ProducerStateEntry
from storage.log.segment import LogSegment

Line = dict[str, Any]

_OFFSET = re.compile(r"(start|end|hw|lso|recovery|segment\[(-?\d+)])([+-]\d+)?")
_RELATIVE = re.compile(r"(?:next|current)([+-]\d+)?")
_MAX_EPOCH = 2**15 - 1


class ScriptError(LogCompactionError):
    """The script asks for what there is not: it is no answer of the log, and the replay ends."""

    reason_code = "wrong-usage"


class ClosedError(LogError):
    """An operation that needs an open log, or a running log manager."""


class LogCleaningError(LogError):
    """A log that the cleaner cannot even weigh."""


class NotCleanedError(LogError):
    """A log whose data is wrong: its cleaning has left it as it was."""

    kafka_name, kafka_cause = "CorruptRecordException", None


class OpenError(LogError):
    """An operation that needs a closed log, or a log manager that is not running."""


def settings_of(line: Line) -> dict[str, str]:
    """The settings that a line names, as Kafka takes them: as text."""
    return {name: str(value) for name, value in line.items() if name not in ("op", "log", "topic")}


class Values:
    """Looks values up in a log; `resolved` notes what they stood for."""

    def __init__(self, log: Log, resolved: Line) -> None:
        self._log, self._resolved = log, resolved

    def offset(self, line: Line, name: str) -> int:
        value = line[name]
        if isinstance(value, int):
            return value
        found = _OFFSET.fullmatch(str(value))
        if not found:
            raise ScriptError(f"{json_text(value)} is no offset")
        at = self._named(found[1], found[2]) + int(found[3] or 0)
        self._resolved[name] = at
        return at

    def _named(self, name: str, number: str | None) -> int:
        if number is not None:
            return segment(self._log, int(number)).base_offset
        log = self._log
        return {
            "start": log.log_start_offset,
            "end": log.log_end_offset,
            "hw": log.high_watermark,
            "lso": log.last_stable_offset,
            "recovery": log.recovery_point,
        }[name]

    def epoch(self, line: Line) -> int:
        """`current+N`: of the producer, within what there can be."""
        return self._relative(line, "epoch")

    def sequence(self, line: Line) -> int:
        """`next+N`: behind the producer's last one, round."""
        return self._relative(line, "seq")

    def _relative(self, line: Line, name: str) -> int:
        value = line.get(name, -1)
        if isinstance(value, int):
            return value
        found = _RELATIVE.fullmatch(str(value))
        if not found:
            raise ScriptError(f"{json_text(value)} is no {name}")
        producer = self._log.producers.producers.get(line.get("pid", 0))
        more = int(found[1] or 0)
        if name == "epoch":
            known = 0 if producer is None else producer.epoch
            at = min(_MAX_EPOCH, max(0, known + more))
        else:
            at = (_next_sequence(producer) + more) % 2**31
        self._resolved[name] = at
        return at


def _next_sequence(producer: ProducerStateEntry | None) -> int:
    last = -1 if producer is None else producer.last_sequence
    return 0 if last == MAX_SEQUENCE else last + 1


def segment(log: Log, number: int) -> LogSegment:
    """The N-th segment, counted round."""
    found = log.segments
    return found[number % len(found)]
