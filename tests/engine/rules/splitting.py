"""A segment with offsets too far apart, met while a log is loaded: spec L-25.3, L-8.4."""

from tests.engine.rules.case import Case, Line
from tests.engine.rules.steps import (
    CLOSE,
    FILES,
    OPEN,
    clock,
    config,
    damage,
    fails,
    follower,
    opened,
    state,
)

FAR = 2**31 + 7
JOIN: Line = {"op": "damage", "how": "join", "segment": 0}
NO_INDEX = damage("delete", segment=0, suffix=".index")
# one segment with a batch at 0, at 3, at 2^31 + 7 and behind it
JOINED = (OPEN, follower(0), follower(3), follower(FAR), follower(FAR + 1), CLOSE, JOIN)

CASES = [
    Case(
        "L-25.3, L-8.4",
        "a segment without an index is split where it is recovered; none of its files is left",
        *JOINED,
        NO_INDEX,
        OPEN,
        state(bases=[0, FAR], sizes=[140, 140], log_end_offset=FAR + 2),
        FILES,
    ),
    Case(
        "L-25.3",
        "a segment that was loaded already is deleted after file.delete.delay.ms",
        *JOINED,
        opened(clean=False, recovery_point=0),
        state(bases=[0, FAR], sizes=[140, 140], log_end_offset=FAR + 2),
        FILES,
        clock(60_000),
        FILES,
    ),
    Case(
        "L-25.3",
        "a segment with all its indexes is not looked into after a clean shutdown",
        *JOINED,
        OPEN,
        state(bases=[0], sizes=[280], log_end_offset=FAR + 2),
    ),
    Case(
        "L-25.3",
        "an offset too far in the middle alone: there is nothing to split",
        OPEN,
        follower(0),
        follower(1),
        follower(2),
        CLOSE,
        damage("flip", segment=0, at=72),
        NO_INDEX,
        OPEN,
        fails("IllegalArgumentException"),
    ),
    Case(
        "L-8.4",
        "index entries of the new segments are by batch",
        config(index_interval_bytes=0),
        *JOINED,
        NO_INDEX,
        OPEN,
        state(bases=[0, FAR], indexes=[8, 8], time_indexes=[12, 12]),
        FILES,
    ),
]
