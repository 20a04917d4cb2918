"""The logs of the crash campaign of the engine, and the operations that are cut short.

A story is a script in two parts. What the first part leaves is on disk; while the second is done, a
crash may come after every operation on a file.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.engine.rules.case import NOW_MS, Line
from tests.engine.rules.steps import (
    CLOSE,
    CRASH,
    OPEN,
    RETENTION,
    ROLL,
    SNAPSHOT,
    TO_END,
    begin_at,
    by,
    clock,
    config,
    damage,
    flush,
    follower,
    in_txn,
    log_start,
    many,
    marker,
    one,
    truncate,
)

CHECKPOINT: Line = {"op": "checkpoint"}
FLUSH = flush(force=True)
FAR = 2**31 + 7  # from 0 too far for an index
DAY_MS = 24 * 60 * 60 * 1000
SMALL = config(index_interval_bytes=0, segment_index_bytes=96)


@dataclass(frozen=True)
class Story:
    """What is done, and what of it may be cut short."""

    name: str
    before: Sequence[Line]
    cut_short: Sequence[Line]


def _ended(pid: int, first: int, commit: bool, epoch: int) -> tuple[Line, ...]:
    """A transaction of one batch, and its marker."""
    return (
        in_txn(first, pid=pid, leader_epoch=epoch),
        marker(commit=commit, pid=pid, leader_epoch=epoch),
    )


# three segments: 0 to 4, 5 to 8, 9 to 12; each with an aborted transaction
THREE = (
    SMALL,
    OPEN,
    *_ended(1, 0, False, 1),
    by(0, pid=2, leader_epoch=1),
    many(NOW_MS, NOW_MS + 1, leader_epoch=1),
    ROLL,
    *_ended(1, 1, False, 2),
    by(1, pid=2, leader_epoch=2),
    one(NOW_MS + 2, leader_epoch=2),
    ROLL,
    *_ended(1, 2, False, 3),
    by(2, pid=2, leader_epoch=3),
    one(NOW_MS + 3, leader_epoch=3),
)
FLUSHED = (FLUSH, TO_END, CHECKPOINT)
STORIES = (
    Story(
        "append",
        (SMALL, OPEN, by(0, pid=2, leader_epoch=1), *FLUSHED),
        (
            one(NOW_MS, leader_epoch=1),
            in_txn(0, leader_epoch=2),
            FLUSH,
            CHECKPOINT,
            marker(commit=False, leader_epoch=2),
            by(1, pid=2, leader_epoch=2),
            flush(offset="end-1"),
            CHECKPOINT,
            many(NOW_MS, NOW_MS + 1, NOW_MS + 2, leader_epoch=2),
            FLUSH,
            CHECKPOINT,
        ),
    ),
    Story(
        "roll",
        (SMALL, OPEN, by(0, pid=2, leader_epoch=1), *FLUSHED),
        (
            *_ended(1, 0, False, 1),
            ROLL,
            CHECKPOINT,
            by(1, pid=2, leader_epoch=2),
            *_ended(1, 1, False, 2),
            ROLL,
            one(NOW_MS + 1, leader_epoch=2),
            CHECKPOINT,
            FLUSH,
            SNAPSHOT,
            CHECKPOINT,
        ),
    ),
    Story(
        "preallocated",
        (
            config(
                index_interval_bytes=0,
                segment_index_bytes=96,
                preallocate="true",
                segment_bytes=400,
            ),
            OPEN,
            by(0, pid=2, leader_epoch=1),
            *FLUSHED,
        ),
        (
            *_ended(1, 0, False, 1),
            ROLL,
            one(NOW_MS + 1, leader_epoch=2),
            FLUSH,
            CHECKPOINT,
            one(NOW_MS + 2, leader_epoch=2),
        ),
    ),
    Story(
        "truncated within a segment",
        (*THREE, *FLUSHED),
        (
            truncate(10),
            CHECKPOINT,
            one(NOW_MS + 9, leader_epoch=4),
            FLUSH,
            CHECKPOINT,
            one(NOW_MS + 9, leader_epoch=4),
        ),
    ),
    Story(
        "truncated by segments",
        (*THREE, *FLUSHED),
        (
            truncate(3),
            CHECKPOINT,
            many(*[NOW_MS + 9] * 4, leader_epoch=4),
            FLUSH,
            CHECKPOINT,
            ROLL,
            by(1, pid=2, leader_epoch=4),
            many(*[NOW_MS + 9] * 4, leader_epoch=4),
            FLUSH,
            CHECKPOINT,
        ),
    ),
    Story(
        "begun anew",
        (*THREE, *FLUSHED),
        (
            begin_at(5),
            CHECKPOINT,
            follower(5, leader_epoch=4),
            follower(6, leader_epoch=4),
            FLUSH,
            CHECKPOINT,
            begin_at(50),
            follower(50, leader_epoch=5),
            FLUSH,
            CHECKPOINT,
            clock(60_001),
        ),
    ),
    Story(
        "records deleted",
        (*THREE, *FLUSHED),
        (
            log_start(7),
            CHECKPOINT,
            RETENTION,
            one(NOW_MS + 4, leader_epoch=4),
            FLUSH,
            CHECKPOINT,
            clock(60_001),
            log_start("hw"),
            RETENTION,
            CHECKPOINT,
            FLUSH,
        ),
    ),
    Story(
        "expired",
        (*THREE, *FLUSHED, config(retention_ms=DAY_MS)),
        (
            config(retention_bytes=500),
            RETENTION,
            FLUSH,
            CHECKPOINT,
            clock(DAY_MS + 60_000),
            RETENTION,
            one(NOW_MS + DAY_MS, leader_epoch=4),
            FLUSH,
            CHECKPOINT,
            clock(60_001),
        ),
    ),
    Story(
        "closed",
        (SMALL, OPEN, by(0, pid=2, leader_epoch=1), *FLUSHED),
        (
            *_ended(1, 0, False, 1),
            in_txn(1, leader_epoch=1),
            CLOSE,
            OPEN,
            by(1, pid=2, leader_epoch=2),
            ROLL,
            one(NOW_MS + 1, leader_epoch=2),
            CLOSE,
        ),
    ),
    Story(
        "recovered",
        (
            *THREE,
            *FLUSHED,
            *_ended(1, 3, False, 3),
            one(leader_epoch=3),
            CRASH,
            damage("truncate", segment=-1, at=-30),
        ),
        (OPEN, one(NOW_MS + 4, leader_epoch=4), FLUSH, CHECKPOINT),
    ),
    Story(
        "recovered by segments",
        (*THREE, CRASH, damage("flip", segment=1, at=-10)),
        (OPEN, one(NOW_MS + 4, leader_epoch=4), FLUSH, CHECKPOINT),
    ),
    Story(
        "split",
        (
            SMALL,
            OPEN,
            follower(0, leader_epoch=1),
            follower(3, leader_epoch=1),
            follower(FAR, leader_epoch=2),
            follower(FAR + 1, leader_epoch=2),
            *FLUSHED,
            CRASH,
            damage("join", segment=0),
        ),
        (OPEN, one(NOW_MS + 4, leader_epoch=4), FLUSH, CHECKPOINT, clock(60_001)),
    ),
)
