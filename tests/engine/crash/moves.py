"""Crash states of moves of a log between two log directories.

The move of a running log manager, and that of `compactor log move`. Every state, with all legal
reorderings, is started by Kafka's log manager and by ours: the same answers and the same files; the
records are there, or the start is refused as the log is in both directories. The command, asked for
again, finishes what was cut short.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from compactor.errors import RefusedError, UsageError
from compactor.offline_log.log_location import LogLocation
from compactor.offline_log.log_move import move_log, plan_move
from storage.files.local import LOCAL
from tests.crash.operations import Record
from tests.crash.states import CrashState
from tests.engine.crash.memory_record import MemoryRecorder, tree
from tests.engine.replay.replayed import replay_in, replayed
from tests.engine.rules.case import NOW_MS, Line
from tests.engine.rules.steps import (
    AS_FOLLOWER,
    FILES,
    TO_END,
    clock,
    config,
    flush,
    many,
    marker,
    one,
    read,
)
from tests.support.files.memory import MemoryFiles

LOGS = "/logs"
SOURCE, TARGET = f"{LOGS}/d0", f"{LOGS}/d1"
START: Line = {"op": "startup"}
SHUT_DOWN: Line = {"op": "shutdown"}
DIRECTORIES: Sequence[Line] = (
    {"op": "manager", "dirs": 2},
    {**config(index_interval_bytes=0, segment_index_bytes=96), "topic": "t"},
)
BEGUN: Sequence[Line] = (*DIRECTORIES, START, {"op": "create", "dir": 0})
TASKS: Sequence[Line] = (
    {"op": "task", "name": "checkpoint_recovery_points"},
    {"op": "task", "name": "checkpoint_log_starts"},
)
APPENDED: Sequence[Line] = (
    many(NOW_MS, NOW_MS + 1),
    one(pid=1, epoch=0, seq=0, txn=True),
    marker(commit=False),
)
FLUSHED: Sequence[Line] = (TO_END, flush(force=True), *TASKS)
COPIED: Sequence[Line] = (
    {"op": "create", "future": True, "dir": 1},
    {**many(NOW_MS, NOW_MS + 1), **AS_FOLLOWER, "base_offset": 0, "future": True},
    {
        **one(pid=1, epoch=0, seq=0, txn=True),
        **AS_FOLLOWER,
        "base_offset": 2,
        "future": True,
    },
)
REPLACED: Sequence[Line] = ({"op": "replace_with_future"}, clock(60_000), *TASKS)
ALL = read("start", max_bytes=100_000)
LOOK: Sequence[Line] = (START, ALL, FILES, SHUT_DOWN, FILES)


class Moved(NamedTuple):
    """A move that was not cut short, as it was recorded."""

    name: str
    record: Record
    records: Line  # what a read gives before and afterwards


def by_manager() -> Moved:
    """Recorded from before its copy is made, of which nothing has been flushed."""
    recorder = MemoryRecorder()
    lines = [*BEGUN, *APPENDED[:2], *FLUSHED, ALL]
    told = replay_in(recorder.files, LOGS).lines([*lines, *COPIED, *REPLACED, ALL])
    before = [_next(told) for _ in lines]
    recorder.begin()
    for _ in (*COPIED, *REPLACED):
        _next(told)
    recorder.end()
    assert _next(told)["result"] == before[-1]["result"], "the copy has the same bytes"
    return Moved("manager", recorder.record, before[-1]["result"])


def by_command() -> Moved:
    recorder = MemoryRecorder()
    told = replayed(recorder.files, LOGS, [*BEGUN, *APPENDED, *FLUSHED, ALL, SHUT_DOWN])
    recorder.begin()
    finish(recorder.files)
    recorder.end()
    return Moved("command", recorder.record, told[-2]["result"])


def finish(files: Any) -> None:
    """Do what `compactor log move` does under its locks."""
    move_log(plan_move(LogLocation(SOURCE, "t", 0), TARGET, files), files, lambda *_: None)


MOVES = (by_manager, by_command)


def _next(lines: Iterator[Line]) -> Line:
    told: Line = json.loads(json.dumps(next(lines)))
    assert "error" not in told, told
    return told


def script_of(state: CrashState) -> list[Line]:
    """The state laid out, started and looked at."""
    lines = [*DIRECTORIES]
    files = tree(state.files)
    for path, data in sorted(files.items()):
        if path.parts[:2] == ("/", "logs") and len(path.parts) > 3:
            lines += _laid_out(path, data, has_files=any(path in each.parents for each in files))
    return [*lines, *LOOK]


def _laid_out(path: Path, data: bytes | None, has_files: bool) -> Iterator[Line]:
    *_, directory, name = path.parts[:4]
    number = int(directory.removeprefix("d"))
    where: Line = {"op": "damage", "dir": number, "make_directory": True}
    if data is None:
        if not has_files:
            empty = {**where, "log": name, "file": "nothing"}
            yield {**empty, "how": "write", "hex": ""}
            yield {**empty, "how": "delete"}
    elif len(path.parts) == 4:
        yield {**where, "log_dir": True, "file": name, "how": "write", "hex": data.hex()}
    else:
        yield {**where, "log": name, "file": path.name, "how": "write", "hex": data.hex()}


def problems_of(moved: Moved, state: CrashState, told: Sequence[Line]) -> Iterator[str]:
    """What is wrong with a start by our manager, and with the command if it is asked again."""
    start, found = told[-len(LOOK)], told[-len(LOOK) + 1]
    if "error" in start:
        if start["error"] != "IllegalStateException":
            yield f"the start ends with {start['error']}"
    elif found.get("result") != moved.records:
        yield f"{found.get('error')} {found.get('result')} is read, expected {moved.records}"
    if moved.name == "command":
        yield from _problems_of_another(moved, state)


def _problems_of_another(moved: Moved, state: CrashState) -> Iterator[str]:
    files = MemoryFiles()
    for path, data in sorted(tree(state.files).items()):
        if data is None:
            files.make_directory(str(path))
        else:
            files.replace_file(str(path), data)
    try:
        finish(files)
    except UsageError:  # there is nothing to move any more
        pass
    except RefusedError as error:
        yield f"the command, asked again, is refused: {error}"
        return
    if [name for name in files.list_names(SOURCE)[0] if name.startswith("t-0")]:
        yield "the command leaves something in the source"
    lines = [*DIRECTORIES, START, ALL]
    found = list(replay_in(files, LOGS).lines(lines)) if files.exists(f"{TARGET}/t-0") else []
    if not found or json.loads(json.dumps(found[-1])).get("result") != moved.records:
        yield f"the command, asked again, leaves {found[-1:]}"


def tried(
    moved: Moved, states: Sequence[CrashState], scratch: Path
) -> Iterator[tuple[CrashState, list[Line], list[str]]]:
    """Each state with its start by our manager, and what is wrong with it."""
    for number, state in enumerate(states):
        told = replayed(LOCAL, str(scratch / f"ours-{number}"), script_of(state))
        yield state, told, list(problems_of(moved, state, told))
