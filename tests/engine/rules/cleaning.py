"""Cleanings of a range that a script names: spec C-4, C-6, C-13."""

from tests.engine.rules.case import NOW_MS, Case, Line
from tests.engine.rules.steps import (
    CLOSE,
    FILES,
    OPEN,
    ROLL,
    config,
    fails,
    lines,
    log_start,
    many,
    one,
    result,
    state,
)

FROM_START: Line = {"op": "clean", "first_dirty": "start", "uncleanable": "segment[-1]"}
CHECKPOINT = "cleaner-offset-checkpoint"

# a batch of three is cut off at its last offset, and so as a whole
EMPTY_SEGMENT = (
    many(NOW_MS, NOW_MS, NOW_MS),
    {"op": "truncate_to", "offset": "end-1"},
    ROLL,
)

CASES = [
    Case(
        "C-4.2",
        "a range that ends before it begins leaves an entry below the log start as it is",
        config(cleanup_policy="compact"),
        OPEN,
        one(),
        one(),
        {"op": "settings", "follow_high_watermark": True},
        one(),
        FROM_START,
        result(cleaned=True, end_offset=0),
        log_start(1),
        FROM_START,
        fails("IllegalArgumentException"),
        FILES,
        lines(CHECKPOINT, "t 0 0"),
    ),
    Case(
        "C-13.1",
        "a range of nothing but an empty segment is cleaned",
        config(cleanup_policy="compact"),
        OPEN,
        *EMPTY_SEGMENT,
        FROM_START,
        result(cleaned=True, end_offset=2, messages_read=0),
        FILES,
        lines(CHECKPOINT, "t 0 2"),
    ),
    Case(
        "C-13.1",
        "empty segments of a range become one",
        config(cleanup_policy="compact"),
        OPEN,
        *EMPTY_SEGMENT,
        *EMPTY_SEGMENT,
        FROM_START,
        result(cleaned=True, end_offset=4, messages_read=0),
        state(bases=[0, 4]),
        FILES,
        lines(CHECKPOINT, "t 0 4"),
        CLOSE,
    ),
    Case(
        "C-6.4",
        "what is clean is rewritten, though the range that is dirty is empty",
        config(cleanup_policy="compact"),
        OPEN,
        one(),
        one(),
        ROLL,
        *EMPTY_SEGMENT,
        {"op": "clean", "first_dirty": "segment[1]", "uncleanable": "segment[-1]"},
        result(cleaned=True, end_offset=4, messages_read=2, messages_written=2),
        state(bases=[0, 4]),
        FILES,
        lines(CHECKPOINT, "t 0 4"),
    ),
]
