"""Lines on standard error while a command runs: text, or a JSON object a line.

One event is one line, and has the same words in either form.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType
from typing import Any, TextIO

from compactor.host.clock import now_ms
from compactor.host.output import ForgivingStream

OPTION = "--log-format"
NO_NUMBERS: Mapping[str, float | None] = MappingProxyType({})


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class Level(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


PREFIXES = {Level.INFO: "", Level.WARNING: "compactor: warning: ", Level.ERROR: "compactor: "}


@dataclass(slots=True)
class _State:
    """The state of this process, which has one standard error."""

    format: LogFormat = LogFormat.TEXT
    run_id: str | None = None
    phase: str | None = None  # that the command is in, or that an error has ended


_state = _State()


def log_format_of(words: Sequence[str]) -> LogFormat:
    """Return the form that the words of a command line ask for, however wrong the others are."""
    asked = pairwise(words)
    is_json = (OPTION, LogFormat.JSON) in asked or f"{OPTION}={LogFormat.JSON}" in words
    return LogFormat.JSON if is_json else LogFormat.TEXT


@contextmanager
def lines_written_as(log_format: LogFormat) -> Iterator[None]:
    """Write lines in a form for the length of a block."""
    before = _state.format, _state.run_id, _state.phase
    _state.format, _state.run_id, _state.phase = log_format, None, None
    try:
        yield
    finally:
        _state.format, _state.run_id, _state.phase = before


def is_json_wanted() -> bool:
    """Return whether lines are JSON: no bars among them, on a terminal either."""
    return _state.format is LogFormat.JSON


def note_run_id(run_id: str) -> None:
    """Set the run id of the lines to come; the command's report has the same."""
    _state.run_id = run_id


def enter_phase(name: str | None) -> None:
    """Set the phase of the lines to come. None: no phase."""
    _state.phase = name


def log_line(
    message: str,
    level: Level = Level.INFO,
    *,
    log: str | None = None,
    stream: TextIO | None = None,
    numbers: Mapping[str, float | None] = NO_NUMBERS,
) -> None:
    """Write a line to standard error, or to a stream, even if nobody can read it.

    log: TOPIC-PARTITION, if it is about one. numbers: further fields of the JSON; the
    message says them in its words.
    """
    out = ForgivingStream(stream or sys.stderr)
    as_text = f"{PREFIXES[level]}{message}"
    line = _to_json(message, level, log, numbers) if is_json_wanted() else as_text
    out.write(f"{line}\n")
    out.flush()


def _to_json(message: str, level: Level, log: str | None, numbers: Mapping[str, Any]) -> str:
    ms = now_ms()
    time = datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    fields = {
        "time": f"{time}.{ms % 1000:03}Z",
        "level": level,
        "run_id": _state.run_id,
        "phase": _state.phase,
        "log": log,
        "message": message,
    }
    return json.dumps(fields | dict(numbers), separators=(",", ":"))
