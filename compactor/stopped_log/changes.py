"""What an operator may do to one log, each on an open log: `roll`, `delete-records`, `truncate`.

Each is done on an overlay first, where nothing is changed: what the engine refuses is refused
there, and what would come of it is what the operator is asked about.
"""

from collections.abc import Callable
from typing import NamedTuple

from compactor.stopped_log.opened_log import LogAtWork
from storage.log.engine.log import Log


class Ends(NamedTuple):
    """What a change may move."""

    log_start: int
    log_end: int
    high_watermark: int
    last_stable: int
    segments: int
    size_bytes: int


class Outcome(NamedTuple):
    """What came of a change, or would come."""

    does: str  # in words, as "begins a new segment at offset 30"
    before: Ends
    after: Ends
    is_changed: bool  # False: there is nothing to do


Act = Callable[[LogAtWork], str | None]  # what it does, in words; None: there is nothing to do


class Change(NamedTuple):
    """A change of one log."""

    command: str  # of the command line
    act: Act
    makes_replicas_differ: bool
    nothing: str = "there is nothing to do"


def carried_out(change: Change, work: LogAtWork) -> Outcome:
    """Do it, and compare."""
    before = ends_of(work.log)
    does = change.act(work)
    return Outcome(does or change.nothing, before, ends_of(work.log), does is not None)


def ends_of(log: Log) -> Ends:
    return Ends(
        log.log_start_offset,
        log.log_end_offset,
        log.high_watermark,
        log.last_stable_offset,
        len(log.segments),
        log.size_bytes,
    )


def roll() -> Change:
    """Begin a new segment, so that all there is lies in closed ones."""

    def act(work: LogAtWork) -> str | None:
        if not work.log.segments[-1].size_bytes:
            return None
        return f"begins a new segment at offset {work.log.roll().base_offset}"

    return Change("roll", act, False, "the active segment is empty: there is nothing to roll")
