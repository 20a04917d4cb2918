"""The machine's clock. A command reads it once, and passes the time on.

So every horizon, lag and expiry of a run is judged by one "now", however long the run takes, and
the same moment stands in its report, beside what it keeps and in what it remembers.

Three things stay real time, on purpose. How long something takes or is waited for goes by
`time.monotonic`: the phases of a report, progress, locks. And whether a log was written after "now"
is asked of the machine's clock as each plan is made, unless --as-of says what now is: what a run
itself writes before its last plan, as it recovers, is younger than its beginning.
"""

import time


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
