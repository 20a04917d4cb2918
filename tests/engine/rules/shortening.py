"""Truncation, the log start and retention: spec L-16, L-22, L-23."""

from tests.engine.rules.case import NOW_MS, Case
from tests.engine.rules.steps import (
    FILES,
    OPEN,
    RETENTION,
    ROLL,
    TO_END,
    begin_at,
    by,
    clock,
    config,
    epoch,
    fails,
    files,
    high_watermark,
    log_start,
    one,
    result,
    state,
    truncate,
)

FOUR_SEQUENCES = (by(0), by(1), ROLL, by(2), ROLL, by(3), TO_END)
FOUR_EPOCHS = [
    step for number in range(4) for step in (*([ROLL] if number else []), one(leader_epoch=number))
]
OLD = (one(NOW_MS - 9000), ROLL, one(NOW_MS - 8000), ROLL, one(NOW_MS - 7000))

CASES = [
    Case(
        "EE-132, L-22.1",
        "a truncation at the log end cuts nothing but the epochs that begin there",
        OPEN,
        one(),
        epoch(5, "end"),
        state(leader_epochs=[[0, 0], [5, 1]]),
        truncate("end"),
        result({"truncated": False}),
        state(leader_epochs=[[0, 0]]),
        truncate(-1),
        fails("IllegalArgumentException"),
    ),
    Case(
        "EE-136, L-22.1",
        "a truncation below the first segment begins the log anew",
        OPEN,
        begin_at(40),
        one(),
        truncate(10),
        result({"truncated": True}),
        state(log_start_offset=10, log_end_offset=10, bases=[10]),
    ),
    Case(
        "EE-137, L-22.2, L-14.9, L-14.10",
        "a truncation takes producers and snapshots back",
        OPEN,
        *FOUR_SEQUENCES,
        state(bases=[0, 2, 3], snapshots=[2, 3]),
        truncate(3),
        state(high_watermark=3, last_seqs=[2], snapshots=[2, 3]),
        truncate(1),
        state(high_watermark=1, last_seqs=[0], snapshots=[1]),
        FILES,
        files(
            *(f"{0:020}.{kind}" for kind in ("log", "index", "timeindex")),
            *(f"{2:020}.{kind}.deleted" for kind in ("log", "index", "timeindex", "snapshot")),
            *(f"{3:020}.{kind}.deleted" for kind in ("log", "index", "timeindex", "snapshot")),
            f"{1:020}.snapshot",
            "leader-epoch-checkpoint",
        ),
    ),
    Case(
        "EE-139, L-16.4, L-23.1",
        "what lies below the log start goes with the next retention",
        OPEN,
        *FOUR_EPOCHS,
        TO_END,
        log_start(2),
        state(bases=[0, 1, 2, 3], leader_epochs=[[2, 2], [3, 3]]),
        RETENTION,
        result({"deleted": 2}),
        state(bases=[2, 3], leader_epochs=[[2, 2], [3, 3]], snapshots=[2, 3]),
        FILES,
    ),
    *(
        Case(
            "EE-141, L-23.4",
            f"segments of times now and now - 5000 go by time: {after} ms later",
            config(retention_ms=1000),
            OPEN,
            one(NOW_MS),
            ROLL,
            one(NOW_MS - 5000),
            TO_END,
            clock(after),
            RETENTION,
            result({"deleted": deleted}),
            state(bases=bases),
        )
        for after, deleted, bases in ((0, 0, [0, 1]), (1000, 0, [0, 1]), (1001, 2, [2]))
    ),
    Case(
        "EE-142, L-23.4",
        "nothing goes past the high watermark",
        config(retention_ms=1000),
        OPEN,
        *OLD,
        RETENTION,
        result({"deleted": 0}),
        high_watermark(1),
        RETENTION,
        result({"deleted": 1}),
        state(bases=[1, 2], log_start_offset=1),
    ),
]
