"""Rolls and flushes: spec L-11.5, L-21."""

from tests.engine.rules.case import Case
from tests.engine.rules.steps import (
    FILES,
    OPEN,
    ROLL,
    clock,
    config,
    files,
    flush,
    one,
    result,
    state,
)

ZERO, ONE = f"{0:020}", f"{1:020}"

CASES = [
    Case(
        "EE-119, L-11.5",
        "an empty segment is not rolled by its age",
        config(segment_ms=1000),
        OPEN,
        clock(5000),
        one(),
        state(bases=[0]),
    ),
    Case(
        "EE-122, L-21.1",
        "the roll of an empty active segment makes another of the same base",
        OPEN,
        ROLL,
        result({"base_offset": 0}),
        state(bases=[0], snapshots=[]),
        FILES,
        files(
            f"{ZERO}.log",
            f"{ZERO}.log.deleted",
            f"{ZERO}.index.deleted",
            f"{ZERO}.timeindex.deleted",
            "leader-epoch-checkpoint",
        ),
    ),
    Case(
        "EE-124, L-4.8, L-21.3",
        "a rolled segment has its indexes once it is flushed",
        OPEN,
        one(),
        ROLL,
        state(bases=[0, 1], snapshots=[1], recovery_point=1),
        FILES,
        files(
            f"{ZERO}.index",
            f"{ZERO}.log",
            f"{ZERO}.timeindex",
            f"{ONE}.log",
            f"{ONE}.snapshot",
            "leader-epoch-checkpoint",
        ),
        flush(force=True),
        state(recovery_point=1),
        FILES,
        files(
            f"{ZERO}.index",
            f"{ZERO}.log",
            f"{ZERO}.timeindex",
            f"{ONE}.index",
            f"{ONE}.log",
            f"{ONE}.snapshot",
            f"{ONE}.timeindex",
            "leader-epoch-checkpoint",
        ),
    ),
]
