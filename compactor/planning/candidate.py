"""Check one compacted log against the rules of selection, with no more reading than is needed.

Names, sizes and checkpoints show that most logs are not worth cleaning, since a bound that takes
reading (an open transaction) only makes the range shorter. So `judge` reads nothing but,
where a lag is configured, one index entry or batch header a segment. `prepare` looks at the end of
the log and at its producers, for those logs that are left.

`why_clock_is_behind` compares the clock of the round with the times at which the log was written.
The clock dates delete horizons: dated too early, a tombstone goes before its time. A file's time of
modification is from another clock, and nobody cleans a log before it is written. The times of
records are whatever producers set, so they only cause a notice. `codec_notes` says which codecs are
of another build than that of the chosen Kafka (V-5).

Source: spec C-4, C-5, C-23.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from cleaner_jobs.messages import ActiveProducer
from compactor.host.printable import duration_text, iso_time, span_text
from compactor.host.shell_commands import named
from compactor.log_checks.missing_offsets import missing_segment
from compactor.log_dirs.survey import (
    CheckpointOffsets,
    first_batch_timestamp_ms,
    has_batch_from,
    largest_timestamp_ms,
    last_time_entry_ms,
)
from compactor.planning import selection
from compactor.planning.selection import Bound, BoundName, CleanableRange, FirstDirty
from compactor.reason_codes import Reason, ReasonCode
from compactor.settings.config import CLOCKS_DIFFER_MS, Config
from compactor.settings.topic_config import TopicConfig
from storage.codecs.compression import build_notes, differing_builds, installed_builds
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.file_names import CLEANED, DELETED, LOG, MAX_LOG_BYTES, Segment, file_name
from storage.formats.txn_index import AbortedTxn
from storage.kafka_versions import NEWEST, KafkaVersion
from storage.log.log_dir import PartitionListing, log_end_offset, why_unloadable
from storage.log.producer_state import ExpiryClock, ProducerState, load_producer_state
from storage.log.segment_reader import read_batch_headers

OTHER_BYTES_NOTE = "the same records in other compressed bytes: {}"
_LOOKED_AT = 8  # batches at the beginning of each segment
# Files that a broker had no time to unlink, and those of a cleaner that failed (C-17.3): a broker
# removes both when it starts, and a round the latter before its first swap.
_MAY_REMAIN = (DELETED, CLEANED)
YOUNGER_RECORDS = (
    "it has records with timestamps later than the clock of the round: lags and retention wait "
    "until that time"
)


@dataclass(frozen=True, slots=True)
class RoundClock:
    """What of a round's settings and time a log's judgement depends on."""

    now_ms: int
    producer_id_expiration_ms: int
    is_checked: bool = False  # compared with the times at which files were written
    machine_ms: int | None = None  # what the machine's says, where now_ms is what it said before

    @classmethod
    def of(cls, config: Config, now_ms: int, machine_ms: int | None) -> "RoundClock":
        """That of a round with these settings."""
        expiration_ms = config.producer_id_expiration_ms
        return cls(now_ms, expiration_ms, not config.rules.any_clock, machine_ms)


class Judgement(NamedTuple):
    """The range of a log that could be cleaned, and every number that led to it."""

    partition: PartitionListing
    log_dir: str
    config: TopicConfig
    offsets: CheckpointOffsets
    first_dirty: FirstDirty
    bounds: tuple[Bound, ...]
    cleanable: CleanableRange
    compaction_delay_ms: int  # by how much it is past max.compaction.lag.ms; 0: it is not
    log_end_offset: int | None = None  # None: not looked up, which takes reading
    last_stable_offset: int | None = None  # likewise (C-4.5)
    is_due: bool = False  # whatever part of it is dirty
    is_known_whole: bool = False  # a gap between its segments is no missing segment
    high_watermark: int | None = None  # no more than the log end; None: not looked up, likewise
    kafka: KafkaVersion = NEWEST  # whose answer is given

    @property
    def is_eligible(self) -> bool:
        if self.is_due:
            return bool(self.to_rewrite)
        ratio = self.config.min_cleanable_dirty_ratio
        return self.cleanable.is_eligible(ratio, self.compaction_delay_ms)

    @property
    def to_rewrite(self) -> tuple[Segment, ...]:
        """Give the segments of the round: from the first in the directory (C-6.4)."""
        end = self.cleanable.first_uncleanable_offset
        return tuple([segment for segment in self.partition.segments if segment.base_offset < end])


class Prepared(NamedTuple):
    """What a look into the log itself added: its range may be shorter, or it may be refused."""

    judgement: Judgement
    producers: tuple[ActiveProducer, ...]
    refusal: Reason | None  # why it cannot be cleaned yet, though it is eligible
    to_rewrite: tuple[Segment, ...]  # index files that are missing have the size of rebuilt ones
    # of all segments without .index: base offset, and the entries that a broker's recovery finds
    rebuilt_txn_indexes: tuple[tuple[int, tuple[AbortedTxn, ...]], ...]
    notes: tuple[str, ...] = ()
    codec_notes: tuple[str, ...] = ()  # a run finds for itself what it compresses anew


def name_defect(partition: PartitionListing) -> Reason | None:
    """Say what in the names of a partition's files forbids to work on it; None if nothing does."""
    if partition.special:
        text = f"{partition.special[0]}; links are not followed"
        return Reason(ReasonCode.FOREIGN_FILE, text)
    if partition.stray:
        name = partition.stray[0]
        return Reason(ReasonCode.FOREIGN_FILE, f"{name}: {why_unloadable(name)}")
    unfinished = [name for name in partition.unfinished if not name.endswith(_MAY_REMAIN)]
    if unfinished:
        count = (
            f"{unfinished[0]} and {len(unfinished) - 1} more" if unfinished[1:] else unfinished[0]
        )
        return Reason(
            ReasonCode.CUT_SHORT,
            f"{count}: left by a cleaning that was cut short; the next run settles it first, "
            f"and so does {named('recover')}, if all else of the log is sound",
        )
    return None


def judge(
    partition: PartitionListing,
    log_dir: str,
    config: TopicConfig,
    offsets: CheckpointOffsets,
    now_ms: int,
) -> Judgement:
    """Compute the cleanable range but for open transactions. The log has a segment or more.

    Raise CorruptFileError for a damaged file, and for a log that ends before it starts.
    """
    segments = partition.segments
    active = segments[-1].base_offset
    known_end_offset = None
    if max(offsets.log_start, offsets.cleaner or 0) > active:
        known_end_offset = log_end_offset(partition)
    end_offset = active if known_end_offset is None else known_end_offset  # it is active or more
    if offsets.log_start > end_offset:
        log_path = os.path.join(partition.path, file_name(active, LOG))
        problem = (
            f"log ends at offset {end_offset}, before its log start offset {offsets.log_start}"
        )
        raise CorruptFileError(log_path, segments[-1].log_bytes, problem)
    dirty = selection.first_dirty(offsets.cleaner, offsets.log_start, end_offset)
    bounds = [Bound(BoundName.ACTIVE_SEGMENT, active)]
    if offsets.high_watermark is not None:
        high_watermark = selection.last_stable_bound(offsets.high_watermark, None)
        bounds.append(high_watermark._replace(cause=offsets.high_watermark_cause))
    if config.min_compaction_lag_ms > 0:
        young = selection.min_lag_bound(
            segments,
            dirty.offset,
            lambda segment: largest_timestamp_ms(partition, segment),
            now_ms - config.min_compaction_lag_ms,
        )
        bounds += [young] if young else []
    return Judgement(
        partition=partition,
        log_dir=log_dir,
        config=config,
        offsets=offsets,
        first_dirty=dirty,
        bounds=tuple(bounds),
        cleanable=selection.cleanable_range(segments, dirty.offset, bounds),
        compaction_delay_ms=_compaction_delay_ms(
            partition, dirty.offset, now_ms - config.max_compaction_lag_ms
        ),
        log_end_offset=known_end_offset,
    )


def with_bound(judgement: Judgement, bound: Bound) -> Judgement:
    """Judge once more, with one bound more."""
    bounds = (*judgement.bounds, bound)
    segments, first_dirty = judgement.partition.segments, judgement.first_dirty
    cleanable = selection.cleanable_range(segments, first_dirty.offset, bounds)
    return judgement._replace(bounds=bounds, cleanable=cleanable)


def prepare(judgement: Judgement, clock: RoundClock, clean_shutdown: bool) -> Prepared:
    """Look at the end of a log and at its producers, and, if it is eligible, for missing indexes.

    Raise CorruptFileError where the log does not end with a whole batch, or contradicts itself.
    """
    partition = judgement.partition
    end_offset = log_end_offset(partition)
    expiry = ExpiryClock(clock.now_ms, clock.producer_id_expiration_ms)
    log_start_offset = judgement.offsets.log_start
    state = load_producer_state(partition, log_start_offset, end_offset, expiry, clean_shutdown)
    high_watermark = judgement.offsets.high_watermark
    high_watermark = end_offset if high_watermark is None else min(high_watermark, end_offset)
    unstable = state.first_unstable_below(high_watermark)
    bound = selection.last_stable_bound(high_watermark, unstable)
    judgement = judgement._replace(
        log_end_offset=end_offset, last_stable_offset=bound.offset, high_watermark=high_watermark
    )
    if bound.name is BoundName.OPEN_TRANSACTION:
        cause = _open_transactions(state, clock.now_ms)
        judgement = with_bound(judgement, bound._replace(cause=cause))
    to_rewrite = judgement.to_rewrite
    refusal = _refusal(to_rewrite)
    notes: tuple[str, ...] = ()
    if refusal is None and judgement.is_eligible:
        _check_lag(judgement, clock.now_ms)
        if not judgement.is_known_whole:
            _check_gaps(judgement)
        if clock.is_checked and has_younger_records(partition, to_rewrite, clock.now_ms):
            notes = (YOUNGER_RECORDS,)
        to_rewrite = tuple([_with_indexes(judgement, segment) for segment in to_rewrite])
    else:
        to_rewrite = ()
    rebuilt = tuple(state.rebuilt_txn_indexes.items())
    return Prepared(
        judgement=judgement,
        producers=_producers(state),
        refusal=refusal,
        to_rewrite=to_rewrite,
        rebuilt_txn_indexes=rebuilt,
        notes=notes,
        codec_notes=codec_notes(partition, to_rewrite, judgement.kafka),
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


def codec_notes(
    partition: PartitionListing, segments: Iterable[Segment], kafka: KafkaVersion
) -> tuple[str, ...]:
    """Say which codecs of a log would not give its Kafka's bytes, by its first batches.

    Nothing is read where all codecs do. What cannot be read gives no note; the scan reports it.
    """
    if not differing_builds(kafka, installed_builds()):
        return ()
    codecs = 0
    for segment in segments:
        path = os.path.join(partition.path, file_name(segment.base_offset, LOG))
        try:
            headers = read_batch_headers(path, files=partition.access)
            for _, header in islice(headers, _LOOKED_AT):
                codecs |= 1 << header.codec
        except (CorruptFileError, UnsupportedFormatError, OSError):
            continue
    notes = build_notes(kafka, codecs, installed_builds())
    return tuple([OTHER_BYTES_NOTE.format(note) for note in notes])


def _compaction_delay_ms(
    partition: PartitionListing, first_dirty_offset: int, oldest_allowed_ms: int
) -> int:
    if oldest_allowed_ms <= 1:
        return 0  # no timestamp that counts is older: spare the reading, most logs have no max lag
    times = (
        first_batch_timestamp_ms(partition, segment)
        for segment in selection.inactive_from(partition.segments, first_dirty_offset)
    )
    return selection.compaction_delay_ms(times, oldest_allowed_ms)


def _check_lag(judgement: Judgement, now_ms: int) -> None:
    """Raise CorruptFileError if a time index hides a batch that min.compaction.lag.ms protects."""
    lag_ms = judgement.config.min_compaction_lag_ms
    if lag_ms <= 0:
        return
    end = judgement.cleanable.first_uncleanable_offset
    partition, first_dirty = judgement.partition, judgement.first_dirty
    for segment in selection.inactive_from(partition.segments, first_dirty.offset):
        if segment.base_offset < end:
            has_batch_from(partition, segment, now_ms - lag_ms + 1)


def _check_gaps(judgement: Judgement) -> None:
    """Raise CorruptFileError where a segment is missing, which a cleaning would conceal.

    What is damaged, or cannot be read, is a problem for those that need it.
    """
    bases = [segment.base_offset for segment in judgement.partition.segments]
    first_dirty_offset = judgement.first_dirty.offset
    if len(bases) < 2 or bases[-1] <= first_dirty_offset:
        return
    found = None
    with suppress(CorruptFileError, OSError):
        found = missing_segment(judgement.partition, first_dirty_offset)
    if found is not None:
        raise CorruptFileError(found.path, found.position, found.problem)


def _refusal(to_rewrite: Iterable[Segment]) -> Reason | None:
    for segment in to_rewrite:
        if segment.log_bytes > MAX_LOG_BYTES:
            name = file_name(segment.base_offset, LOG)
            return Reason(
                ReasonCode.SEGMENT_TOO_LARGE,
                f"{name} has {segment.log_bytes} bytes, more than the {MAX_LOG_BYTES} of a segment",
            )
    return None


def _with_indexes(judgement: Judgement, segment: Segment) -> Segment:
    """Give the segment as a broker loads it, which rebuilds its indexes without .index (F-16.1)."""
    if segment.index_bytes is not None:
        return segment
    from storage.formats.segment_indexes import rebuild_indexes  # with kernels that few plans need

    log_path = os.path.join(judgement.partition.path, file_name(segment.base_offset, LOG))
    interval_bytes = judgement.config.index_interval_bytes
    access = judgement.partition.access
    batches = read_batch_headers(log_path, 0, segment.log_bytes, access)
    headers = (header for _, header in batches)
    indexes = rebuild_indexes(headers, segment.base_offset, interval_bytes)
    return segment._replace(
        index_bytes=len(indexes.offset_index), time_index_bytes=len(indexes.time_index)
    )


def _producers(state: ProducerState) -> tuple[ActiveProducer, ...]:
    return tuple(
        ActiveProducer(entry.producer_id, entry.producer_epoch, entry.last_offset)
        for _, entry in sorted(state.entries.items())
    )


def _open_transactions(state: ProducerState, now_ms: int) -> str:
    if not state.open_transactions:
        return "a transaction whose marker the high watermark has not passed"
    first, *more = state.open_transactions
    written, written_ms = "", first.last_timestamp_ms
    if written_ms is not None and 0 <= written_ms <= now_ms:
        age = duration_text(now_ms - written_ms)
        written = f", last written to {age} ago ({iso_time(written_ms)})"
    others = f"; {len(more)} more after it" if more else ""
    since = f"producer {first.producer_id} has one open since offset {first.first_offset}"
    return f"{since}{written}{others}"
