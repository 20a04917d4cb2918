"""How much a process leaves to others: of the processor, and so of the disk (ioprio_set(2))."""

import os


def be_nice(niceness: int) -> None:
    """Let this process, and what it starts from now on, have this niceness, unless it is nicer."""
    if os.getpriority(os.PRIO_PROCESS, 0) < niceness:
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
