"""What a log manager does to logs and their directories: spec L-24, L-26 to L-28."""

from typing import Any

from tests.engine.rules.case import Case, Line, Seen
from tests.engine.rules.steps import FILES, clock, epoch, flush, follower, lines, ok, one

START: Line = {"op": "startup"}
STOP: Line = {"op": "shutdown"}
CRASH: Line = {"op": "crash"}
DELETE_DELAY_MS = 60_000
LONG = "a" * 249  # as long as a topic's name can be


def manager(dirs: int = 1) -> Line:
    return {"op": "manager", "dirs": dirs}


def create(log: str = "t-0", directory: int = 0, **more: Any) -> Line:
    return {"op": "create", "log": log, "dir": directory, **more}


def delete(log: str = "t-0", **more: Any) -> Line:
    return {"op": "delete_log", "log": log, **more}


def of(line: Line, log: str = "t-0", is_future: bool = False) -> Line:
    """An operation on one of the logs."""
    return {**line, "log": log, **({"future": True} if is_future else {})}


def task(name: str) -> Line:
    return {"op": "task", "name": name}


def directories(**names: list[str]) -> Seen:
    return Seen({f"directories.{name}": each for name, each in names.items()})


def log(name: str = "t-0", **values: object) -> Seen:
    return Seen({f"logs/{name}/{path}": value for path, value in values.items()})


MOVE: Line = {"op": "replace_with_future", "log": "t-0"}

CASES = [
    Case(
        "L-24.3, L-28.6",
        "a deleted log has another name at once, and is none any more",
        manager(),
        START,
        create(),
        of(one()),
        delete(),
        directories(d0=["t-0.UUID-delete"]),
        Seen({"logs": {}}),
    ),
    Case(
        "L-24.3, L-28.8",
        "the epochs of a log that was moved go on in its new place",
        manager(2),
        START,
        create(),
        of(one(leader_epoch=3)),
        create(directory=1, future=True),
        directories(d0=["t-0"], d1=["t-0.UUID-future"]),
        of(follower(0, leader_epoch=3), is_future=True),
        MOVE,
        directories(d0=["t-0.UUID-delete"], d1=["t-0"]),
        of(epoch(5, 1)),
        FILES,
        lines("d1/t-0/leader-epoch-checkpoint", "3 0", "5 1"),
        lines("d0/t-0.UUID-delete/leader-epoch-checkpoint", "3 0"),
    ),
    Case(
        "L-24.4, L-27.6",
        "the directory of a deleted log goes with everything in it",
        manager(),
        START,
        create(),
        of(one(pid=1, epoch=0, seq=0)),
        of({"op": "roll"}),
        of(one(pid=1, epoch=0, seq=1)),
        of({"op": "roll"}),
        delete(),
        clock(DELETE_DELAY_MS - 1),
        directories(d0=["t-0.UUID-delete"]),
        clock(DELETE_DELAY_MS),
        directories(d0=[]),
    ),
    Case(
        "L-24.5",
        "a topic's name is cut where a log that is given up gets a longer one",
        manager(),
        START,
        create(f"{LONG}-0"),
        create(f"{LONG}-1"),
        delete(f"{LONG}-0"),
        delete(f"{LONG}-1", stray=True),
        # 255 but for -0., 32 letters and -delete, or -stray
        directories(d0=[f"{'a' * 213}-0.UUID-delete", f"{'a' * 214}-1.UUID-stray"]),
    ),
    Case(
        "L-26.10",
        "a shutdown leaves a marker, here without an epoch of a broker; a crash leaves none",
        manager(),
        START,
        create(),
        STOP,
        FILES,
        Seen({"size d0/.kafka_cleanshutdown": len('{"version":0,"brokerEpoch":-1}')}),
        START,
        CRASH,
        FILES,
        Seen({"size d0/.kafka_cleanshutdown": None}),
    ),
    Case(
        "L-27.4",
        "the recovery points of a directory are those of its logs and of copies on their way there",
        manager(2),
        START,
        create(),
        create("u-0", 1),
        of(one()),
        of(one(), "u-0"),
        of(one(), "u-0"),
        create(directory=1, future=True),
        of(follower(0), is_future=True),
        of(flush()),
        of(flush(), is_future=True),
        task("checkpoint_recovery_points"),
        FILES,
        lines("d0/recovery-point-offset-checkpoint", "t 0 1"),
        lines("d1/recovery-point-offset-checkpoint", "t 0 1", "u 0 0"),
    ),
    Case(
        "L-28.1",
        "a log that there is is given, wherever a new one was to be",
        manager(2),
        START,
        create(),
        of(one()),
        create(directory=1),
        ok(),
        directories(d0=["t-0"], d1=[]),
        log(log_end_offset=1),
    ),
    Case(
        "L-28.9",
        "a copy on its way is one after a restart, too, until it takes the place of the log",
        manager(2),
        START,
        create(),
        of(one()),
        create(directory=1, future=True),
        of(follower(0), is_future=True),
        STOP,
        START,
        directories(d0=["t-0"], d1=["t-0.UUID-future"]),
        log("t-0", log_end_offset=1),
        log("t-0.future", log_end_offset=1, recovery_point=1),
        create(directory=1, future=True),  # as the replica manager does: cleaning is paused
        MOVE,
        ok(),
        directories(d0=["t-0.UUID-delete"], d1=["t-0"]),
    ),
]
