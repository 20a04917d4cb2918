"""A crash state as a script: its files are laid out, the log is opened, looked at, and used."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from compactor.replay.replay import Replay
from storage.files.local import LOCAL
from tests.crash.states import LOCK_FILE, CrashState
from tests.engine.crash.checks import lost, problems_of
from tests.engine.crash.record import PARTITION, Recorded, held_in
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


def script_of(state: CrashState) -> list[Line]:
    """The lines; those before the second `open` lay the files out."""
    lines: list[Line] = [config(index_interval_bytes=0, segment_index_bytes=96), OPEN, CRASH]
    lines += [damage("delete", file=name) for name in _MADE]
    for place, content in sorted(state.files.items()):
        if place.name != LOCK_FILE:
            where = {} if place.directory else {"log_dir": True}
            lines.append(damage("write", file=place.name, hex=content.data.hex(), **where))
    return [*lines, OPEN, _ABORTED, _LARGEST, *_USE]


def opened(run: Recorded, state: CrashState, log_dir: Path) -> Outcome:
    """Do it by our engine, in a directory of its own."""
    transcript, problems = list[dict[str, Any]](), list[str]()
    script = script_of(state)
    at = script.index(_LARGEST)
    is_refused = False
    for number, line in enumerate(Replay(LOCAL, str(log_dir)).lines(script)):
        transcript.append(line)
        if number == at:
            is_refused = "error" in transcript[at - 2]
            problems = _problems(run, state, log_dir, transcript[at - 2 :])
    if not is_refused:
        problems += [
            f"{line['op']} ends with {line['error']} {line.get('cause', '')}"
            for line in transcript[at - 2 :]
            if "error" in line
        ]
    return Outcome(transcript, problems, is_refused)


def _problems(
    run: Recorded, state: CrashState, log_dir: Path, transcript: Sequence[dict[str, Any]]
) -> list[str]:
    is_open, aborted, largest = transcript
    found = held_in(log_dir / PARTITION)
    if "error" in is_open:
        return list(lost(run.stages, state.operations, found))
    told = {**is_open["state"], "aborted": aborted["result"], "largest": largest["result"]}
    return list(problems_of(run.stages, state.operations, found, told))
