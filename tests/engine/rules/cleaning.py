"""The entry of a log in the cleaner's checkpoint, where a script names the range: spec C-4."""

from tests.engine.rules.case import Case, Line
from tests.engine.rules.steps import FILES, OPEN, config, fails, lines, log_start, one, result

FROM_START: Line = {"op": "clean", "first_dirty": "start", "uncleanable": "segment[-1]"}
CHECKPOINT = "cleaner-offset-checkpoint"

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
]
