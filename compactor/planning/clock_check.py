"""The clock of a round, compared with the times at which a log was written.

Delete horizons are dated by it: dated too early, a tombstone goes before its time. A file's time of
modification is a clock's of its own, and nobody cleans a log before it is written. The times of
records are whatever producers gave, so they only cause a notice.
"""

from collections.abc import Iterable

from compactor.host.printable import iso_time, span_text
from compactor.log_dirs.survey import last_time_entry_ms
from compactor.settings.config import CLOCKS_DIFFER_MS
from storage.file_names import LOG, Segment, file_name
from storage.log.log_dir import PartitionListing

YOUNGER_RECORDS = (
    "it has records with timestamps later than the clock of the round: lags and retention wait "
    "until that time"
)


def why_clock_is_behind(
    partition: PartitionListing, clock_ms: int, machine_ms: int | None = None
) -> str | None:
    """Say which segment was written after the time that a round goes by; None if none was.

    machine_ms: what the machine's clock says by now, where the round's is what it said when the
    run began: what is not younger may have been written by the run itself, as it recovered.
    """
    written_by_ms = clock_ms if machine_ms is None else max(clock_ms, machine_ms)
    for segment in partition.segments:
        written_ms = segment.log_mtime_ns // 1_000_000
        if written_ms - written_by_ms > CLOCKS_DIFFER_MS:
            ahead_ms = written_ms - clock_ms
            return (
                f"{file_name(segment.base_offset, LOG)} was written {span_text(ahead_ms)} after "
                f"the clock of the round, {iso_time(clock_ms)}: tombstones would be dated too "
                "early, and go too soon. Correct the clock or --as-of; "
                "--any-clock accepts it"
            )
    return None


def has_younger_records(
    partition: PartitionListing, segments: Iterable[Segment], clock_ms: int
) -> bool:
    """Say whether a time index ends with a time after that of the round. segments: inactive."""
    latest_ms = clock_ms + CLOCKS_DIFFER_MS
    return any(last_time_entry_ms(partition, segment) > latest_ms for segment in segments)
