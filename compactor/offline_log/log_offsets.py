"""Every offset of a log that a person may ask for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from compactor.offline_log.open_log import ViewedLog
from storage.formats.record import or_none
from storage.log.log import Log
from storage.log.producer_state_manager import OpenTransaction


class Ends(NamedTuple):
    """The ends of a log, and its size."""

    log_start: int
    log_end: int
    high_watermark: int
    last_stable: int
    segments: int
    size_bytes: int


class EpochRange(NamedTuple):
    epoch: int
    start_offset: int
    end_offset: int  # exclusive


class OffsetForTime(NamedTuple):
    """The first record that is not older than a time."""

    asked_ms: int
    offset: int | None  # None: all are older
    timestamp_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOffsets:
    """The offsets of a log: its ends, and how far it is replicated and decided."""

    name: str
    log_start: int
    high_watermark: int
    is_high_watermark_known: bool  # False: nothing says it, it is taken to be the log end
    last_stable: int
    log_end: int
    recovery_point: int
    cleaner: int | None
    has_clean_shutdown: bool
    segments: int
    size_bytes: int
    epochs: tuple[EpochRange, ...]
    open_transactions: tuple[OpenTransaction, ...]
    times: tuple[OffsetForTime, ...]
    hidden: tuple[str, ...]  # .log files of which a starting broker would cut off a part


def ends_of(log: Log) -> Ends:
    return Ends(
        log_start=log.log_start_offset,
        log_end=log.log_end_offset,
        high_watermark=log.high_watermark,
        last_stable=log.last_stable_offset,
        segments=len(log.segments),
        size_bytes=log.size_bytes,
    )


def offsets_of(name: str, viewed: ViewedLog, times_ms: Sequence[int] = ()) -> LogOffsets:
    """Return the offsets of an open log."""
    log, known = viewed.log, viewed.known
    return LogOffsets(
        name=name,
        **ends_of(log)._asdict(),
        is_high_watermark_known=known.high_watermark is not None,
        recovery_point=known.recovery_point,
        cleaner=known.cleaner,
        has_clean_shutdown=known.is_clean,
        epochs=_epochs(log),
        open_transactions=log.producers.open_transactions,
        times=tuple(_at_time(log, time_ms) for time_ms in times_ms),
        hidden=viewed.hidden,
    )


def _epochs(log: Log) -> tuple[EpochRange, ...]:
    entries = log.epochs.entries
    ends = [entry.start_offset for entry in entries[1:]] + [log.log_end_offset]
    return tuple(
        EpochRange(entry.epoch, entry.start_offset, end)
        for entry, end in zip(entries, ends, strict=False)  # without an entry there is one end
    )


def _at_time(log: Log, time_ms: int) -> OffsetForTime:
    found = log.offset_by_timestamp(time_ms)
    if found is None or found.offset < 0:
        return OffsetForTime(time_ms, None, None)
    return OffsetForTime(time_ms, found.offset, or_none(found.timestamp_ms))
