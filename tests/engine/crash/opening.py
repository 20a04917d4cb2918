"""A crash state as a script: its files are laid out, the log is opened, looked at, and used."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from storage.files.local import LOCAL
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from tests.crash.states import LOCK_FILE, TEMPORARY, CrashState
from tests.engine.crash.checks import lost, problems_of
from tests.engine.crash.record import PARTITION, Recorded, Stage, held_in
from tests.engine.crash.stories import SMALL
from tests.engine.replay.replayed import replay_in
from tests.engine.rules.case import NOW_MS, Line
from tests.engine.rules.steps import (
    CLOSE,
    CRASH,
    FILES,
    OPEN,
    RETENTION,
    TO_END,
    at_time,
    config,
    damage,
    one,
    read,
)

# what a log that is opened for the first time makes
_MADE = ("00000000000000000000.log", "leader-epoch-checkpoint")
# the lock, and what is left of the marker that was being made: Kafka makes it in place
_PASSED_OVER = (LOCK_FILE, CLEAN_SHUTDOWN + TEMPORARY)
_ABORTED: Line = {"op": "aborted_txns", "offset": "start", "upper": 1_000_000}
_LARGEST = at_time("max")
_DAY_MS = 24 * 60 * 60 * 1000
_USE = (
    config(retention_ms=_DAY_MS),
    RETENTION,  # by times of records, which are those of the clock or later
    read("start", "committed"),
    read("start", max_bytes=100),
    at_time(NOW_MS + 2),
    FILES,
    one(NOW_MS + 50, leader_epoch=9),
    TO_END,
    CLOSE,
    FILES,
    OPEN,
    FILES,
)


class Outcome(NamedTuple):
    """What came of opening a crash state by our engine."""

    transcript: list[dict[str, Any]]
    problems: Sequence[str]
    is_refused: bool  # the log stays closed


LOOK = (OPEN, _ABORTED, _LARGEST, *_USE)


def script_of(state: CrashState) -> list[Line]:
    """The lines; those before the second `open` lay the files out."""
    lines: list[Line] = [SMALL, OPEN, CRASH]
    lines += [damage("delete", file=name) for name in _MADE]
    for place, content in sorted(state.files.items()):
        if place.name not in _PASSED_OVER:
            where = {} if place.directory else {"log_dir": True}
            lines.append(damage("write", file=place.name, hex=content.data.hex(), **where))
    return [*lines, *LOOK]


def opened(run: Recorded, state: CrashState, log_dir: Path) -> Outcome:
    """Do it by our engine, in a directory of its own."""
    return looked_at(log_dir, script_of(state), run.stages, state.operations)


def looked_at(
    log_dir: Path, script: Sequence[Line], stages: Sequence[Stage], operations: int
) -> Outcome:
    """Do a script that ends with `LOOK`, about a log that has come so far in its story."""
    transcript, problems = list[dict[str, Any]](), list[str]()
    at = script.index(_LARGEST)
    is_refused = False
    for number, line in enumerate(replay_in(LOCAL, str(log_dir)).lines(script)):
        transcript.append(line)
        if number == at:
            is_refused = "error" in transcript[at - 2]
            found = held_in(log_dir / PARTITION)
            if is_refused:
                problems = list(lost(stages, operations, found))
            else:
                told = _told(transcript[at - 2 :])
                problems = list(problems_of(stages, operations, found, told))
    if not is_refused:
        problems += [
            f"{line['op']} ends with {line['error']} {line.get('cause', '')}"
            for line in transcript[at - 2 :]
            if "error" in line
        ]
    return Outcome(transcript, problems, is_refused)


def _told(transcript: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What an opened log tells of itself."""
    is_open, aborted, largest = transcript
    return {**is_open["state"], "aborted": aborted["result"], "largest": largest["result"]}
