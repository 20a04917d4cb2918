"""Changes of an offline log that add no record: `roll`, `delete-records`, `truncate`.

Each is applied to an overlay first, which changes no file: the engine refuses what it would refuse,
and the operator is asked about the outcome.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from compactor.errors import RefusedError, UsageError
from compactor.offline_log.log_offsets import Ends, ends_of
from compactor.offline_log.open_log import OpenLog
from compactor.reason_codes import ReasonCode


class AppendedRecord(NamedTuple):
    """A record that was added, so that it is known again."""

    offset: int
    key_sha256: str | None  # None: it has no key
    is_tombstone: bool


class Outcome(NamedTuple):
    """The outcome of a change, or what it would be."""

    does: str  # in words, as "begins a new segment at offset 30"
    before: Ends
    after: Ends
    is_changed: bool  # False: there is nothing to do
    appended: tuple[AppendedRecord, ...] = ()  # for a report


Act = Callable[[OpenLog], str | None]  # what it does, in words; None: there is nothing to do


class Change(NamedTuple):
    """A change of one log."""

    command: str  # of the command line
    act: Act
    makes_replicas_differ: bool
    nothing: str = "there is nothing to do"
    needs_policy: bool = False  # whether it may be done depends on the topic's cleanup.policy


def apply_change(change: Change, work: OpenLog) -> Outcome:
    """Apply a change to an open log; return its outcome."""
    before = ends_of(work.log)
    does = change.act(work)
    return Outcome(does or change.nothing, before, ends_of(work.log), does is not None)


def roll() -> Change:
    """Begin a new segment, so that all records lie in closed ones."""

    def act(work: OpenLog) -> str | None:
        if not work.log.segments[-1].size_bytes:
            return None
        return f"begins a new segment at offset {work.log.roll().base_offset}"

    return Change("roll", act, False, "the active segment is empty: there is nothing to roll")


def delete_records(before: int | None) -> Change:
    """Let the log begin at an offset, and delete the segments that are wholly below.

    before: None: the log end, which is the high watermark of an only replica.
    Source: Kafka, Partition.deleteRecordsOnLeader; spec L-23.1, L-23.2, C-18.2.
    """

    def act(work: OpenLog) -> str | None:
        log = work.log
        if log.config.is_compacted and not log.config.is_deleted:
            raise RefusedError(
                f"{work.at.name}: cleanup.policy of its topic is compact alone, and Kafka deletes "
                "no records of such a topic. Nothing was changed",
                ReasonCode.POLICY_FORBIDS,
            )
        log.follow_end()
        offset = log.log_end_offset if before is None else before
        if offset > log.log_end_offset:
            raise UsageError(f"the log ends at offset {log.log_end_offset}", "before", offset)
        if not log.increment_log_start(offset):
            return None
        work.write_log_start()  # before segments go, or a crash would bring back what is left
        log.config = replace(log.config, retention_ms=-1, retention_bytes=-1)  # by offset alone
        gone = log.delete_old_segments()
        return (
            f"deletes all records below offset {offset}; {_segments(gone)} with nothing else, and "
            "what is below it in the next one is skipped by readers from now on"
        )

    nothing = "the log does not begin before that offset"
    return Change("delete-records", act, True, nothing, needs_policy=True)


def truncate(to: int) -> Change:
    """End the log at an offset, or at the beginning of the batch that holds it.

    Source: Kafka, LogManager.truncateTo, UnifiedLog.truncateTo; spec L-22, C-17.5.
    """

    def act(work: OpenLog) -> str | None:
        log = work.log
        start, end = log.log_start_offset, log.log_end_offset
        if not start <= to <= end:
            raise UsageError(f"the log holds offsets {start} up to {end}", "to", to)
        if to == end:
            return None
        offset = min(to, log.place_of(to).offset)
        bases = [segment.base_offset for segment in log.segments]
        # before anything is cut: to clean a part again does no harm, to leave one out would
        work.lower_cleaner_checkpoint(max(base for base in bases if base <= offset))
        log.truncate_to(offset)
        gone = len(bases) - len(log.segments)
        of_batch = "" if offset == to else f", where the batch that holds {to} begins"
        return (
            f"deletes all records from offset {offset} on{of_batch}; {_segments(gone)} with "
            "nothing else"
        )

    return Change("truncate", act, True, "the log ends there already")


def _segments(count: int) -> str:
    return "1 segment goes" if count == 1 else f"{count} segments go"
